//go:build machine

package bundle

import (
	"bufio"
	"io"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
)

// server starts a program that serves until the test ends, waits until it says
// that it is ready, and returns its process.
func (b *bench) server(ready string, words ...string) (pid int) {
	b.t.Helper()
	c := exec.Command(words[0], words[1:]...)
	c.Dir, c.Env = b.dir, b.env()
	// It does not outlive us, whatever becomes of us (prctl(2)). The signal is sent
	// when the thread that started it ends, so that one waits for it.
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	log, err := c.StderrPipe()
	if err != nil {
		b.t.Fatal(err)
	}
	started, ended := make(chan error), make(chan struct{})
	said, drained := make(chan bool), make(chan struct{})
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := c.Start()
		started <- err
		if err == nil {
			<-drained
			_ = c.Wait()
			close(ended)
		}
	}()
	if err := <-started; err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() {
		_ = c.Process.Kill()
		<-ended
	})
	var text strings.Builder
	go func() {
		defer close(drained)
		lines := bufio.NewReader(log)
		for {
			line, err := lines.ReadString('\n')
			text.WriteString(line)
			if err != nil || strings.Contains(line, ready) {
				said <- err == nil
				break
			}
		}
		_, _ = io.Copy(io.Discard, lines)
	}()
	if !<-said {
		b.t.Fatalf("%s ended\n%s", strings.Join(words, " "), text.String())
	}
	return c.Process.Pid
}

// A registry is Debian's docker-registry, which has a network with a loopback and
// nothing else.
type registry struct {
	*bench
	place []string
}

func (b *bench) registry() *registry {
	b.t.Helper()
	b.put("registry.yml", "version: 0.1\nlog: {level: info, accesslog: {disabled: true}}\n"+
		"storage: {filesystem: {rootdirectory: "+b.path("registry")+"}}\nhttp: {addr: '127.0.0.1:5000', secret: none}\n")
	pid := b.server("listening on", "unshare", "-n", "sh", "-c", "ip link set lo up && exec docker-registry serve registry.yml")
	return &registry{b, append([]string{"nsenter", "-t", strconv.Itoa(pid), "-n"}, private...)}
}

// ask runs a program that reaches the registry, and nothing else.
func (r *registry) ask(program string, args ...string) answer {
	r.t.Helper()
	return r.in(r.place, program, args...)
}
