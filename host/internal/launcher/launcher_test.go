package launcher

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/nox-mesh/nox-mesh/pkgbuild"
)

func TestTheLauncherBecomesTheHost(t *testing.T) {
	m := newMachine(t, program(t, "1.0.0"))
	cmd := exec.Command(m.launcher, "launch", m.binary)
	cmd.Env = []string{"NOTIFY_SOCKET=@x"}
	out, _ := cmd.CombinedOutput()
	if want := fmt.Sprintf("host 1.0.0 %d run @x given \"\"\n", cmd.Process.Pid); string(out) != want || cmd.ProcessState.ExitCode() != 3 {
		t.Errorf("printed %q, %v; want %q, exit 3", out, cmd.ProcessState, want)
	}
}

func TestS07S08WithoutASuccessorNothingIsCountedOrPutBack(t *testing.T) {
	m := newMachine(t, program(t, "1.0.0"))
	for range 50 { // it crashes, again and again
		m.host("1.0.0")
	}
	before, err := os.ReadFile(filepath.Join(filepath.Dir(m.launcher), StateFile))
	if err != nil {
		t.Fatal(err)
	}
	m.host("1.0.0")
	after, err := os.ReadFile(filepath.Join(filepath.Dir(m.launcher), StateFile))
	if s := m.state(); err != nil || !bytes.Equal(before, after) || s.Trial != nil || s.Failed != nil {
		t.Errorf("something is counted: %+v, %v", s, err)
	}
	m.alone()
}

func TestASuccessorThatNeverProvesItselfIsPutBack(t *testing.T) {
	m := newMachine(t, []byte(bad))
	for n := range Limit {
		m.env = []string{fmt.Sprintf("INVOCATION_ID=%032d", n)}
		if out, code := m.start(); code != 1 || out != "the bad one: run\n" {
			t.Fatalf("start %d: exit %d, %s", n, code, out)
		}
		m.env = []string{"SERVICE_RESULT=exit-code", "EXIT_CODE=exited", "EXIT_STATUS=1"}
		if out, code := m.command(m.launcher, "post"); code != 0 || out != "" {
			t.Fatalf("post: exit %d, %s", code, out)
		}
	}
	m.env = nil
	out := m.host("1.0.0", "prove")
	if !strings.Contains(out, "is given up after 5 starts: it did not prove itself") || !strings.Contains(out, "is put back") || !strings.Contains(out, "proved: true") {
		t.Errorf("it said: %s", out)
	}
	if !m.is(m.binary, program(t, "1.0.0")) {
		t.Error("the copy was not put back")
	}
	m.alone()
	s := m.state()
	f := s.Failed
	if f == nil || s.Trial != nil {
		t.Fatalf("state %+v", s)
	}
	sum := sha256.Sum256([]byte(bad))
	if f.Digest != fmt.Sprintf("sha256:%x", sum) || f.Starts != Limit || !f.Back || f.At.IsZero() ||
		len(f.Runs) != Limit || f.Runs[4] != fmt.Sprintf("%032d", 4) || len(f.Ends) != Limit || f.Ends[0] != "exit-code/exited/1" {
		t.Errorf("failed: %+v", *f)
	}
	// It stays so: the good one is not counted any more.
	for range 2 * Limit {
		m.host("1.0.0")
	}
}

func TestS12WhatCannotBeExecutedIsPutBackAtOnce(t *testing.T) {
	whole := program(t, "1.1.0")
	other := append([]byte{}, whole...)
	other[18] ^= 0xff // e_machine (elf(5))
	for name, content := range map[string][]byte{
		"another architecture": other, "empty": {}, "cut": whole[:100], "text": []byte("no program"),
		"no interpreter": []byte("#!/no/such/interpreter\n"),
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t, content)
			out := m.host("1.0.0")
			if !strings.Contains(out, "cannot be executed") || !m.is(m.binary, program(t, "1.0.0")) {
				t.Errorf("it said: %s", out)
			}
			if f := m.state().Failed; f == nil || f.Starts != 1 || !f.Back || !strings.Contains(f.Why, "cannot be executed") {
				t.Errorf("failed: %+v", f)
			}
			m.alone()
		})
	}
}

func TestAProvenSuccessorBecomesTheCopy(t *testing.T) {
	m := newMachine(t, program(t, "1.1.0"))
	for range Limit - 1 {
		m.host("1.1.0", "introduce")
	}
	if tr := m.state().Trial; tr == nil || tr.Version != "9.9.9" || tr.Starts != Limit-1 {
		t.Fatalf("trial: %+v", tr)
	}
	if out := m.host("1.1.0", "prove"); !strings.Contains(out, "proved: true") {
		t.Error(out)
	}
	if s := m.state(); s.Trial != nil || s.Failed != nil || !m.is(m.launcher, program(t, "1.1.0")) {
		t.Errorf("state %+v", s)
	}
	for range 2 * Limit { // it dies a day later
		m.host("1.1.0")
	}
	if out := m.host("1.1.0", "prove"); !strings.Contains(out, "proved: false") {
		t.Errorf("proved again: %s", out)
	}
	m.alone()
}

func TestAStartThatSomebodyEndedDoesNotCount(t *testing.T) {
	for name, end := range map[string]func(m *machine){
		"by the host's own word": func(m *machine) {
			m.host("1.1.0", "stop")
			m.env = []string{"SERVICE_RESULT=success", "EXIT_CODE=exited", "EXIT_STATUS=0"}
		},
		"before it could say so": func(m *machine) {
			m.host("1.1.0")
			m.env = []string{"SERVICE_RESULT=success", "EXIT_CODE=killed", "EXIT_STATUS=TERM"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t, program(t, "1.1.0"))
			for range 3 * Limit {
				end(m)
				m.command(m.launcher, "post")
				m.env = nil
			}
			if s := m.state(); s.Failed != nil || !m.is(m.binary, program(t, "1.1.0")) {
				t.Errorf("a good version was put back: %+v", s.Failed)
			}
		})
	}
}

// What the service manager calls a success besides (systemd.service(5),
// SuccessExitStatus) is no stop that somebody asked for.
func TestASignalThatNobodySentCounts(t *testing.T) {
	for _, signal := range []string{"HUP", "INT", "PIPE"} {
		m := newMachine(t, program(t, "1.1.0"))
		for range Limit {
			m.host("1.1.0")
			m.env = []string{"SERVICE_RESULT=success", "EXIT_CODE=killed", "EXIT_STATUS=" + signal}
			m.command(m.launcher, "post")
			m.env = nil
		}
		m.host("1.0.0")
	}
}

// TestS09AFullDiskDoesNotSwitchItOff: the count has its room before the disk is full.
func TestS09AFullDiskDoesNotSwitchItOff(t *testing.T) {
	m := newMachine(t, program(t, "1.0.0"))
	dir := filepath.Dir(m.launcher)
	if err := syscall.Mount("nox-test", dir, "tmpfs", 0, "size=64m,mode=755"); err != nil {
		t.Skipf("nothing can be mounted: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	m.put(m.launcher, program(t, "1.0.0"))
	m.host("1.0.0")
	full, err := os.Create(filepath.Join(dir, "full"))
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = full.Write(make([]byte, 1<<20))
	}
	full.Close()
	m.put(m.binary, []byte(bad))
	for range Limit {
		if _, code := m.start(); code != 1 {
			t.Fatalf("exit %d", code)
		}
	}
	m.host("1.0.0")
	if f := m.state().Failed; f == nil || !f.Back {
		t.Errorf("failed: %+v", f)
	}
}

// A version that leaves with success when nobody asked is no host.
func TestEndingWithSuccessByItselfIsNoProof(t *testing.T) {
	m := newMachine(t, program(t, "1.1.0"))
	for range Limit {
		m.host("1.1.0")
		m.env = []string{"SERVICE_RESULT=success", "EXIT_CODE=exited", "EXIT_STATUS=0"}
		m.command(m.launcher, "post")
		m.env = nil
	}
	m.host("1.0.0")
}

func TestS09AProofThatCannotBeKeptCostsNothing(t *testing.T) {
	m := newMachine(t, program(t, "1.1.0"))
	// No copy can be made, as on a full disk.
	if err := os.MkdirAll(filepath.Join(filepath.Dir(m.launcher), ".mesh-host.back/x"), 0o755); err != nil {
		t.Fatal(err)
	}
	for range 3 * Limit {
		m.env = []string{"LAUNCHER_TEST_DO=prove", "LAUNCHER_TEST_COPY=" + m.launcher}
		if out, code := m.start(); code != 4 || !strings.Contains(out, "host 1.1.0 ") || !strings.Contains(out, "cannot renew the launcher's copy") {
			t.Fatalf("exit %d: %s", code, out)
		}
	}
	m.env = nil
	if s := m.state(); s.Failed != nil || !m.is(m.launcher, program(t, "1.0.0")) {
		t.Errorf("state %+v", s)
	}
}

func TestBothBadHalts(t *testing.T) {
	m := newMachine(t, []byte("nothing that runs"))
	for range Limit {
		m.host("1.0.0") // and it ends, unproven
	}
	out, code := m.start()
	if code != ExitCannotStart || !strings.Contains(out, "does not live either") {
		t.Errorf("exit %d: %s", code, out)
	}
	m.host("1.0.0", "prove") // a person started it
	for range 2 * Limit {
		m.host("1.0.0")
	}
}

// The bad one is put there again, by whoever: it may have another try, and then
// the same end.
func TestS06TheSameBadVersionAgainAndThenAGoodOne(t *testing.T) {
	m := newMachine(t, []byte("text"))
	m.host("1.0.0", "prove")
	for range 3 {
		m.put(m.binary, []byte("text"))
		m.host("1.0.0", "prove")
	}
	if s := m.state(); s.Failed == nil {
		t.Errorf("state %+v", s)
	}
	m.put(m.binary, program(t, "1.2.0"))
	m.host("1.2.0", "prove")
	if s := m.state(); s.Failed != nil || s.Trial != nil {
		t.Errorf("state %+v", s)
	}
}

func TestWhereTheCopyCannotBePutBackItServesWhereItLies(t *testing.T) {
	m := newMachine(t, []byte("text"))
	// Nothing can be made there, not by root either.
	aside := filepath.Join(filepath.Dir(m.binary), ".mesh-host.back/x")
	if err := os.MkdirAll(aside, 0o755); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		out := m.host("1.0.0", "prove")
		if !strings.Contains(out, "cannot put the last good version back") || !strings.Contains(out, fmt.Sprintf("given %q", m.binary)) {
			t.Errorf("it said: %s", out)
		}
		if s := m.state(); s.Failed == nil || s.Failed.Back || s.Trial != nil {
			t.Errorf("state %+v", s)
		}
	}
	if err := os.RemoveAll(filepath.Dir(aside)); err != nil {
		t.Fatal(err)
	}
	m.host("1.0.0", "prove")
	if s := m.state(); s.Failed == nil || !s.Failed.Back || !m.is(m.binary, program(t, "1.0.0")) {
		t.Errorf("not put back once it could be: %+v", s.Failed)
	}
	m.alone()
}

func TestWhatIsGoneIsWaitedForFromTheCopy(t *testing.T) {
	m := newMachine(t, nil)
	if err := os.Remove(m.binary); err != nil {
		t.Fatal(err)
	}
	for range 2 * Limit {
		m.host("1.0.0", "prove")
	}
	if err := os.Mkdir(m.binary, 0o755); err != nil {
		t.Fatal(err)
	}
	m.host("1.0.0")
	if s := m.state(); s.Failed != nil {
		t.Errorf("state %+v", s)
	}
}

func TestADamagedStateIsSaidAndBegunAnew(t *testing.T) {
	m := newMachine(t, program(t, "1.1.0"))
	m.host("1.1.0")
	if err := os.WriteFile(filepath.Join(filepath.Dir(m.launcher), StateFile), []byte("garbage"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := m.host("1.1.0"); !strings.Contains(out, "begun anew") {
		t.Error(out)
	}
	if tr := m.state().Trial; tr == nil || tr.Starts != 1 {
		t.Errorf("trial %+v", tr)
	}
}

func TestALongStateFits(t *testing.T) {
	dir := t.TempDir()
	long := bounded(strings.Repeat("\x00<é", 100))
	list := []string{long, long, long, long, long}
	digest := "sha256:" + strings.Repeat("0", 64)
	s := State{
		Trial:  &Trial{Digest: digest, Version: long, Starts: 1 << 40, Ends: list, Runs: list},
		Failed: &Failed{Digest: digest, Version: long, Starts: 1 << 40, Why: long, Ends: list, Runs: list},
	}
	if err := s.write(dir); err != nil {
		t.Error(err)
	}
}

func TestTheUnitKnowsTheLaunchersWords(t *testing.T) {
	unit := string(pkgbuild.HostUnit("/usr/bin/mesh-host"))
	for _, want := range []string{
		fmt.Sprintf("RestartPreventExitStatus=%d\n", ExitCannotStart),
		"ExecStart=" + pkgbuild.LauncherPath + " launch /usr/bin/mesh-host\n",
		"ExecStopPost=" + pkgbuild.LauncherPath + " post\n",
		"StartLimitIntervalSec=0\n",
	} {
		if !strings.Contains(unit, want) {
			t.Errorf("the unit has no %q:\n%s", want, unit)
		}
	}
}

func TestReloadSignalsTheProcess(t *testing.T) {
	got := make(chan os.Signal, 1)
	signal.Notify(got, syscall.SIGHUP)
	defer signal.Stop(got)
	if code := Reload([]string{fmt.Sprint(os.Getpid())}); code != 0 {
		t.Fatalf("exit %d", code)
	}
	<-got
	for _, bad := range [][]string{nil, {"x"}, {"0"}, {"-1"}, {"1"}} {
		if code := Reload(bad); code != 2 {
			t.Errorf("reload %v: exit %d, want 2", bad, code)
		}
	}
}

func TestWrongUsageIsNoFailedStart(t *testing.T) {
	m := newMachine(t, program(t, "1.0.0"))
	for _, args := range [][]string{{"launch"}, {"launch", "mesh-host"}, {"launch", "/a", "/b"}, {"launch", "/etc/passwd"}} {
		if out, code := m.command(m.launcher, args...); code != 2 || !strings.HasPrefix(out, "usage:") {
			t.Errorf("%v: exit %d, %s", args, code, out)
		}
	}
}

// Only the copy replaces what is installed.
func TestWhatIsInstalledIsNoLauncher(t *testing.T) {
	m := newMachine(t, program(t, "1.0.0"))
	other := filepath.Join(t.TempDir(), "mesh-host")
	m.put(other, []byte("precious"))
	if out, code := m.command(m.binary, "launch", other); code != 2 || !m.is(other, []byte("precious")) {
		t.Errorf("exit %d: %s", code, out)
	}
	m.alone()
}

func TestASuccessorThatIsAnotherOneEachTimeIsGivenUp(t *testing.T) {
	m := newMachine(t, nil)
	for n := range 3 * Limit {
		m.put(m.binary, fmt.Appendf(nil, "#!/bin/sh\n# %d\nexit 1\n", n))
		if _, code := m.start(); code != 1 {
			t.Fatalf("start %d: exit %d", n, code)
		}
	}
	m.put(m.binary, []byte("#!/bin/sh\n# one more\nexit 1\n"))
	m.host("1.0.0")
}

// The starts of the copy, after a successor failed, are no other successor's.
func TestASuccessorAfterAFailureHasAllItsStarts(t *testing.T) {
	m := newMachine(t, []byte("text"))
	for range 3 * (Limit + 1) { // it halts, and a person starts it again
		m.start()
	}
	m.put(m.binary, program(t, "1.1.0"))
	for range Limit {
		m.host("1.1.0")
	}
	m.host("1.0.0")
}

func TestWhatCannotBeCountedIsNotStarted(t *testing.T) {
	for name, c := range map[string]struct {
		spoil  func(path string) error
		serves string
	}{
		"a fifo":      {func(p string) error { return syscall.Mkfifo(p, 0o600) }, "1.1.0"},
		"a directory": {func(p string) error { return os.MkdirAll(filepath.Join(p, "x"), 0o700) }, "1.1.0"},
		"a symlink":   {func(p string) error { return os.Symlink("/dev/null", p) }, "1.1.0"},
		"nothing is moved aside": {func(p string) error {
			return errors.Join(os.MkdirAll(filepath.Join(p, "x"), 0o700), os.MkdirAll(filepath.Join(p+".aside", "x"), 0o700))
		}, "1.0.0"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t, program(t, "1.1.0"))
			if err := c.spoil(filepath.Join(filepath.Dir(m.launcher), StateFile)); err != nil {
				t.Fatal(err)
			}
			m.host(c.serves)
		})
	}
}

func TestALargeFileIsNotReadToTheEnd(t *testing.T) {
	m := newMachine(t, nil)
	if err := os.Truncate(m.binary, 200<<30); err != nil {
		t.Skipf("no file can be that large here: %v", err)
	}
	if out := m.host("1.0.0"); !strings.Contains(out, "which no host has") {
		t.Error(out)
	}
}

// What is being written now is no version that failed.
func TestASuccessorThatIsBusyIsNotCounted(t *testing.T) {
	m := newMachine(t, program(t, "1.1.0"))
	f, err := os.OpenFile(m.binary, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	m.host("1.0.0")
	f.Close()
	if tr := m.state().Trial; tr == nil || tr.Starts != 0 || tr.Total != 0 {
		t.Errorf("trial: %+v", tr)
	}
	m.host("1.1.0", "prove")
}

func TestAStateBehindASymlinkKnowsItsCopy(t *testing.T) {
	m := newMachine(t, []byte("text"))
	if err := os.MkdirAll(filepath.Join(filepath.Dir(m.binary), ".mesh-host.back/x"), 0o755); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "launcher")
	if err := os.Symlink(filepath.Dir(m.launcher), link); err != nil {
		t.Fatal(err)
	}
	m.launcher = filepath.Join(link, "mesh-host")
	if out := m.host("1.0.0"); !strings.Contains(out, fmt.Sprintf("given %q", m.binary)) {
		t.Error(out)
	}
}
