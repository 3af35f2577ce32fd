package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestMain is also the program whose end is tested: it says that it runs, that it
// was told to end, and then waits for a word on its standard input, which no signal
// interrupts.
func TestMain(m *testing.M) {
	how := os.Getenv("CLI_TEST_PROGRAM")
	if how == "" {
		os.Exit(m.Run())
	}
	os.Args = os.Args[:1]
	os.Exit(Main("program", func(ctx context.Context, _ []string, std Stdio) error {
		if how == "service" {
			HangupReloads(ctx)
		}
		fmt.Fprintln(std.Out, "runs")
		<-ctx.Done()
		fmt.Fprintln(std.Out, "told", errors.Is(context.Cause(ctx), context.Canceled))
		_, err := bufio.NewReader(std.In).ReadString('\n')
		return err
	}))
}

// heedHangup has what the test starts end of a SIGHUP, though the test itself may be
// run under nohup(1): what is ignored is inherited, what is handled is not (signal(7)).
func heedHangup(t *testing.T) {
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	t.Cleanup(func() { signal.Stop(hup) })
}

// TestHowAProgramEnds sends signals, one after the other, each once the program has
// said what is due by then.
func TestHowAProgramEnds(t *testing.T) {
	heedHangup(t)
	const (
		interrupt = syscall.SIGINT
		terminate = syscall.SIGTERM
		hangup    = syscall.SIGHUP
	)
	for what, c := range map[string]struct {
		how string
		// before are signals to which it says nothing; by is that which it is told by.
		before []syscall.Signal
		by     syscall.Signal
		// again are sent afterwards; killed says that they end it there and then.
		again  []syscall.Signal
		killed bool
	}{
		"Ctrl-C":                         {by: interrupt},
		"Ctrl-C twice":                   {by: interrupt, again: []syscall.Signal{interrupt}, killed: true},
		"terminated, and then Ctrl-C":    {by: terminate, again: []syscall.Signal{interrupt}, killed: true},
		"terminated by timeout(1)":       {by: terminate, again: []syscall.Signal{terminate}},
		"the terminal is closed":         {by: hangup, again: []syscall.Signal{hangup}},
		"nohup":                          {how: "nohup", before: []syscall.Signal{hangup}, by: terminate},
		"a service that reads its files": {how: "service", before: []syscall.Signal{hangup}, by: terminate},
	} {
		t.Run(what, func(t *testing.T) {
			line := `exec "$0"`
			if c.how == "nohup" {
				line = `trap "" HUP; exec "$0"`
			}
			cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", line, os.Args[0])
			cmd.Env = append(os.Environ(), "CLI_TEST_PROGRAM="+orPlain(c.how))
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			stuck := time.AfterFunc(20*time.Second, func() { _ = cmd.Process.Kill() })
			defer stuck.Stop()
			said := bufio.NewReader(out)
			says := func(want string) {
				t.Helper()
				if got, err := said.ReadString('\n'); got != want+"\n" {
					t.Errorf("it says %q, %v, want %q", got, err, want)
				}
			}
			send := func(s syscall.Signal) {
				if err := cmd.Process.Signal(s); err != nil {
					t.Error(err)
				}
			}
			says("runs")
			for _, s := range c.before {
				send(s)
			}
			send(c.by)
			says("told true")
			for _, s := range c.again {
				send(s)
			}
			if !c.killed {
				if _, err := in.Write([]byte("go on\n")); err != nil {
					t.Error(err)
				}
			}
			err = cmd.Wait()
			killed := err != nil && strings.Contains(err.Error(), "signal: interrupt")
			if killed != c.killed || !killed && err != nil {
				t.Errorf("it ended with %v", err)
			}
		})
	}
}

func orPlain(how string) string {
	if how == "" {
		return "plain"
	}
	return how
}

func TestWhatWasInterruptedSaysSo(t *testing.T) {
	for _, err := range []error{
		fmt.Errorf("cannot build bundle %q: interrupted: %w", "b.tar", context.Canceled),
		fmt.Errorf("cannot build bundle %q: %w", "b.tar", context.Canceled),
	} {
		is := interrupted{err}
		if got, want := is.Error(), `cannot build bundle "b.tar": interrupted`; got != want || !errors.Is(is, context.Canceled) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
