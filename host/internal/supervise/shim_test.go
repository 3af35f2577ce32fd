package supervise

import (
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestR03ProcessThatFailsIsCountedAndHalted(t *testing.T) {
	b := newBench(t, "exit", "1")
	shim := b.up()
	s := b.phase(Halted)
	if s.Failures != 3 || s.LastExit != "exited with 1" || s.Child != nil {
		t.Errorf("halted with %+v, want 3 failures, exited with 1", s)
	}
	if n := len(b.starts()); n != 3 {
		t.Errorf("it was started %d times, want 3", n)
	}
	b.down(shim)
	for _, line := range []string{"exited with 1; 1 of 3 failures in a row, started again in 5ms",
		"exited with 1; 2 of 3 failures in a row, started again in 50ms", "exited with 1; halted after 3 failures in a row"} {
		if !strings.Contains(b.output(), line) {
			t.Errorf("the output does not say %q:\n%s", line, b.output())
		}
	}
}

func TestR03BackoffDoublesUpToItsLimit(t *testing.T) {
	for n, want := range map[int]time.Duration{
		0: 100 * time.Millisecond, 1: 100 * time.Millisecond, 2: time.Second, 3: 2 * time.Second, 4: 4 * time.Second,
		5: 8 * time.Second, 6: 16 * time.Second, 7: 30 * time.Second, 1000: 30 * time.Second,
	} {
		if got := backoff(100*time.Millisecond, 30*time.Second, n); got != want {
			t.Errorf("after %d ends in a row: %s, want %s", n, got, want)
		}
	}
}

// A port that is busy for two seconds, a configuration that is being written.
func TestFiveFailuresTakeSevenSeconds(t *testing.T) {
	var d Definition
	d.timing()
	var sum time.Duration
	for n := 1; n < 5; n++ {
		sum += backoff(d.Backoff, d.BackoffMax, n)
	}
	if sum < 7*time.Second {
		t.Errorf("a process that always fails at once is halted after %s", sum)
	}
}

func TestHealthyTimeForgetsFailures(t *testing.T) {
	b := newBench(t, "fail", "2")
	b.def.Healthy = time.Second // much longer than it takes to fail
	shim := b.up()
	b.until("two failures", func(s State) bool { return s.Failures == 2 })
	s := b.until("no failures", func(s State) bool { return s.Failures == 0 })
	if s.Phase != Running || len(b.starts()) != 3 {
		t.Errorf("%+v after %d starts, want running after 3", s, len(b.starts()))
	}
	b.down(shim)
}

// One that ends at once and is always started again does not do its work, and no
// exit code makes it so.
func TestR03ShortRunsAreCountedWhateverTheExitCode(t *testing.T) {
	b := newBench(t, "exit", "0")
	b.def.BackoffMax = 50 * time.Millisecond
	shim := b.up()
	s := b.until("more short runs than the limit of failures", func(s State) bool { return s.Short > b.def.FailureLimit && s.Phase == Backoff })
	if s.Failures != 0 || s.LastExit != "exited with 0" {
		t.Errorf("%+v, want no failures, exited with 0", s)
	}
	b.down(shim)
	if line := "exited with 0; 2 short runs in a row, started again in 50ms"; !strings.Contains(b.output(), line) {
		t.Errorf("the output does not say %q:\n%s", line, b.output())
	}
}

func TestHealthyTimeForgetsShortRuns(t *testing.T) {
	b := newBench(t, "fail", "2")
	b.def.Healthy, b.def.SuccessCodes = time.Second, []int{0, 1}
	shim := b.up()
	b.until("two short runs", func(s State) bool { return s.Short == 2 && s.Failures == 0 })
	if s := b.until("none", func(s State) bool { return s.Short == 0 && s.Phase == Running }); len(b.starts()) != 3 {
		t.Errorf("%+v after %d starts, want running after 3", s, len(b.starts()))
	}
	// What has lived long enough is not short when it ends.
	if err := syscall.Kill(b.state().Child.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if s := b.until("its end", func(s State) bool { return s.Failures == 1 }); s.Short != 0 {
		t.Errorf("%+v, want no short run", s)
	}
	b.down(shim)
}

// The pause follows the count: after a long life the first short run is the first.
func TestR03APauseGoesByTheShortRunsThatAreCounted(t *testing.T) {
	b := newBench(t)
	out, err := openOutput(b.dir)
	if err != nil {
		t.Fatal(err)
	}
	s := &shim{root: b.root, dir: b.dir, out: out, def: b.def, lasted: true}
	s.def.BackoffMax = time.Hour
	s.state.LastExit = "exited with 0"
	for range 3 {
		s.ended()
		s.lasted = false
	}
	// It is what a shim of before short runs were counted left after three failures.
	s.state.Short, s.state.Failures, s.failed, s.def.FailureLimit = 0, 3, true, 10
	s.ended()
	s.clock.Stop()
	out.close() // all of it is in the log then
	want := "exited with 0; started again in 5ms\n" +
		"exited with 0; 1 short runs in a row, started again in 5ms\n" +
		"exited with 0; 2 short runs in a row, started again in 50ms\n" +
		"exited with 0; 4 of 10 failures in a row, started again in 200ms\n"
	said := regexp.MustCompile(`(?m)^.*exited`).ReplaceAllString(b.output(), "exited")
	if said != want {
		t.Errorf("it says\n%swant\n%s", said, want)
	}
}

func TestShimThatWasKilledGoesOnCountingShortRuns(t *testing.T) {
	b := newBench(t, "exit", "0")
	shim := b.up()
	before := b.until("two short runs", func(s State) bool { return s.Short >= 2 })
	b.kill(shim)
	shim = b.up()
	s := b.until("one more", func(s State) bool { return s.Shim.PID == shim.Process.Pid && s.Phase == Backoff })
	if s.Short <= before.Short {
		t.Errorf("%+v, it was %+v", s, before)
	}
	b.down(shim)
}

func TestPolicyDecidesWhatFollowsAnExit(t *testing.T) {
	for _, c := range []struct {
		restart  string
		once     bool
		code     string
		phase    Phase
		failures int
	}{
		{"never", false, "0", Exited, 0},
		{"never", false, "1", Exited, 1},
		{"on-failure", false, "0", Exited, 0},
		{"on-failure", false, "7", Exited, 0}, // 7 is a success code
		{"on-failure", false, "1", Backoff, 1},
		{"always", false, "0", Backoff, 0},
		{"always", false, "1", Backoff, 1},
		{"always", true, "0", Exited, 0},
		{"always", true, "1", Backoff, 1},
		{"never", true, "1", Exited, 1},
	} {
		t.Run(fmt.Sprintf("%s,once=%v,exit=%s", c.restart, c.once, c.code), func(t *testing.T) {
			b := newBench(t, "exit", c.code)
			b.def.Restart, b.def.Once, b.def.SuccessCodes, b.def.Backoff = c.restart, c.once, []int{0, 7}, time.Hour
			b.def.BackoffMax = time.Hour
			shim := b.up()
			s := b.phase(c.phase)
			if s.Failures != c.failures || s.LastExit != "exited with "+c.code {
				t.Errorf("%+v, want %d failures", s, c.failures)
			}
			if completed := s.Completed != ""; completed != (c.once && c.code == "0") {
				t.Errorf("completed is %q", s.Completed)
			}
			b.down(shim)
		})
	}
}

func TestOnceRunsOncePerDefinition(t *testing.T) {
	b := newBench(t, "exit", "0")
	b.def.Once = true
	for i, want := range []int{1, 1, 2} {
		if i == 2 {
			b.def.Env = []string{"NEW=1"}
		}
		shim := b.up()
		s := b.phase(Exited)
		if s.Completed != s.Definition || len(b.starts()) != want {
			t.Fatalf("round %d: %d starts, want %d; state %+v", i, len(b.starts()), want, s)
		}
		b.down(shim)
	}
}

func TestR09ProgramThatCannotBeStartedIsRetried(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(exe)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		cause string
		spoil func(t *testing.T, program string) (mend func())
	}{
		"missing": {"no such file or directory", func(t *testing.T, program string) func() {
			return func() { os.Rename(program+".good", program) }
		}},
		"without its interpreter": {"the interpreter that it names is not: no such file or directory", func(t *testing.T, program string) func() {
			os.WriteFile(program, []byte("#!/bin/there-is-none\n"), 0o755)
			return func() { os.Rename(program+".good", program) }
		}},
		"not executable": {"it is not executable (0644): permission denied", func(t *testing.T, program string) func() {
			os.WriteFile(program, good, 0o644)
			return func() { os.Chmod(program, 0o755) }
		}},
		"busy": {"text file busy", func(t *testing.T, program string) func() {
			os.Rename(program+".good", program)
			f, err := os.OpenFile(program, os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			return func() { f.Close() }
		}},
		"of another architecture": {"exec format error", func(t *testing.T, program string) func() {
			bad := append([]byte(nil), good[:1<<16]...)
			bad[18], bad[19] = byte(elf.EM_S390), 0
			os.WriteFile(program, bad, 0o755)
			return func() { os.Rename(program+".good", program) }
		}},
		"without its directory": {`working directory "/srv": no such file or directory`, func(t *testing.T, program string) func() {
			os.Rename(program+".good", program)
			return func() { os.Mkdir(filepath.Join(program, "../../srv"), 0o755) }
		}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, "live")
			program := filepath.Join(b.root, "bin/child")
			if err := os.Remove(program); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(program+".good", good, 0o755); err != nil {
				t.Fatal(err)
			}
			b.def.FailureLimit = 1 << 30
			if strings.Contains(c.cause, "/srv") {
				b.def.Directory = "/srv"
			}
			mend := c.spoil(t, program)
			shim := b.up()
			s := b.until("two failures", func(s State) bool { return s.Failures >= 2 })
			if !strings.Contains(s.LastExit, c.cause) || !strings.HasPrefix(s.LastExit, `cannot start "/bin/child": `) {
				t.Errorf("the last exit is %q, want %q in it", s.LastExit, c.cause)
			}
			mend()
			b.phase(Running)
			b.down(shim)
		})
	}
}

func TestR09ProgramThatIsMissingHaltsAtTheLimit(t *testing.T) {
	b := newBench(t, "live")
	b.def.Command[0] = "/bin/nowhere"
	shim := b.up()
	if s := b.phase(Halted); s.Failures != 3 {
		t.Errorf("%+v, want 3 failures", s)
	}
	b.down(shim)
}

func TestProcessGetsWhatIsDeclaredAndNothingElse(t *testing.T) {
	b := newBench(t, "tell", "a b")
	b.def.Env, b.def.Directory = []string{"A=1"}, "/flags"
	b.write()
	shim := exec.Command(os.Args[0], "shim", "--root", b.root, "test")
	shim.Env = []string{"SECRET=1", "PATH=/other"}
	if err := shim.Start(); err != nil {
		t.Fatal(err)
	}
	b.shims = append(b.shims, shim)
	self := b.phase(Running).Shim
	want := fmt.Sprintf("env %q\nargs %q\ndir %s\nstdin /dev/null <nil>\nfds 3\nleader true\n",
		[]string{path, "A=1", fmt.Sprintf("NOX_SHIM=%d-%d", self.PID, self.Start), "NOX_ROOT=" + b.root}, []string{"/bin/child", "tell", "a b"}, filepath.Join(b.root, "flags"))
	if got := b.raised("told"); got != want {
		t.Errorf("the process saw\n%s\nwant\n%s", got, want)
	}
	b.phase(Running)
	b.down(shim)
}
