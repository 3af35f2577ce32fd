// Command beat is what the walk's processes run: it says what it saw when it
// started, and that it is alone.
//
//	beat NAME run|once [FILE]
//
// BEATS names a folder outside the machine. NAME.lock is locked for as long as
// it lives: one that finds it locked leaves NAME.twice. NAME.saw is what it was
// started with, and what FILE held then.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
)

func main() {
	syscall.Umask(0) // root's today, another user's tomorrow
	name := filepath.Join(os.Getenv("BEATS"), os.Args[1])
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
	lock, err := os.OpenFile(name+".lock", os.O_RDWR|os.O_CREATE, 0o666)
	if err == nil {
		err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	}
	if err != nil {
		_ = os.WriteFile(name+".twice", fmt.Appendf(nil, "%v: %q\n", err, os.Args), 0o666)
		os.Exit(9)
	}
	saw := strings.Join(os.Args[1:], " ") + "\n"
	if len(os.Args) > 3 {
		b, err := os.ReadFile(filepath.Join(os.Getenv("NOX_ROOT"), os.Args[3]))
		saw += fmt.Sprintf("%s%v\n", b, err)
	}
	if os.WriteFile(name+".saw", []byte(saw), 0o666) != nil || os.Args[2] == "once" {
		return
	}
	<-term
}
