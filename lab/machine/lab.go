package machine

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// TB is what a lab needs of a test; *testing.T is one.
type TB interface {
	Helper()
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Skipf(format string, args ...any)
	Failed() bool
	Cleanup(func())
	Context() context.Context
}

// A Lab is a network with machines on it, for one test. It is used by one
// goroutine, but for Run and Pipe.
type Lab struct {
	t    TB
	name string // of its folder in the cache, and of its cgroups
	dir  string // the disks
	root string // the prepared root

	keeper *exec.Cmd
	hold   io.Closer // the keeper's standard input: it lives until this closes

	machines map[string]*Machine
	lastHost int // the last part of the newest address

	wg sync.WaitGroup // what watches over nspawns and their notifications
}

// Start makes a lab that ends with the test. It skips the test where it cannot
// be had (see Require). The first start on a computer makes the root, which
// takes a minute.
func Start(t TB) *Lab {
	t.Helper()
	Require(t)
	home, err := prepare()
	if err != nil {
		t.Fatalf("cannot prepare a lab: %v", err)
	}
	l := &Lab{t: t, name: home.name, dir: home.dir, root: home.root, machines: map[string]*Machine{}, lastHost: 10}
	err = l.startKeeper(home.lock)
	home.lock.Close() // the keeper has it now
	if err != nil {
		t.Fatalf("cannot start a lab: %v", err)
	}
	t.Cleanup(l.end)
	if err := l.makeBridge(); err != nil {
		t.Fatalf("cannot make the lab's network: %v", err)
	}
	return l
}

// startKeeper starts PID 1 of the lab; it takes the lock of the lab's folder
// with it, so that nobody sweeps the folder while it lives.
func (l *Lab) startKeeper(lock *os.File) error {
	cmd := exec.Command("/proc/self/exe", keeperArgument, l.dir, l.name)
	cmd.Env = plainEnv()
	cmd.ExtraFiles = []*os.File{lock}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		// Not Pdeathsig: that is the death of the thread that forked.
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET,
		Setsid:     true,
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if line != keeperReady+"\n" {
		in.Close()
		return errors.Join(err, cmd.Wait(), fmt.Errorf("the keeper said %q (is machine.Main called in TestMain?)", line))
	}
	l.keeper, l.hold = cmd, in
	return nil
}

// end ends everything of the lab and waits until it is gone.
func (l *Lab) end() {
	if l.t.Failed() {
		for _, m := range l.machines {
			l.t.Logf("the console of %s ended with:\n%s", m.name, m.Log())
		}
	}
	l.hold.Close()
	late := time.AfterFunc(time.Minute, func() { _ = l.keeper.Process.Kill() })
	err := l.keeper.Wait()
	late.Stop()
	for _, m := range l.machines {
		m.notify.Close()
	}
	l.wg.Wait()
	if err != nil {
		l.t.Errorf("the lab left something behind: %v", err)
	}
}

// command is a program of this computer that runs among the machines: in the
// keeper's namespaces, which are a lab's alone.
func (l *Lab) command(args ...string) *exec.Cmd {
	pid := strconv.Itoa(l.keeper.Process.Pid)
	cmd := exec.Command("nsenter", append([]string{"-t", pid, "-m", "-n", "-p", "--"}, args...)...)
	cmd.Env = plainEnv()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd
}

// do runs a short command among the machines and returns what it printed.
func (l *Lab) do(stdin string, args ...string) (string, error) {
	cmd := l.command(args...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(out))
	}
	return string(out), nil
}

// plainEnv is the environment of everything in the lab: nothing is inherited.
func plainEnv() []string {
	return []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LC_ALL=C.UTF-8"}
}
