// Command program is what the test's containers run: it stays up until it is
// told to end, or does what its argument says.
package main

import (
	"bufio"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

func main() {
	what := ""
	if len(os.Args) > 1 {
		what = os.Args[1]
	}
	switch what {
	case "exit":
		os.Exit(3)
	case "flood": // 24 MiB
		w := bufio.NewWriter(os.Stdout)
		for range 24 << 12 {
			fmt.Fprintln(w, strings.Repeat("x", 255))
		}
		w.Flush()
		return
	case "list": // what is seen in a folder
		es, err := os.ReadDir(os.Args[2])
		fmt.Println(len(es), es, err)
	case "write":
		if err := os.WriteFile("/data/kept", []byte("kept"), 0o644); err != nil {
			fmt.Println(err)
			os.Exit(4)
		}
	}
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGTERM)
	<-c
}
