package launcher

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A launcher, or a host that proves itself, is killed at each call that changes
// anything; whoever comes next finds one or the other version, whole, and what
// failed is known once the copy is back.
func TestS02KillAnywhere(t *testing.T) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("strace is not here")
	}
	good, next := program(t, "1.0.0"), program(t, "1.1.0")
	for name, c := range map[string]struct {
		installed []byte
		env       []string
		serves    string
	}{
		"the copy is put back":    {[]byte("text"), nil, "1.0.0"},
		"a version proves itself": {next, []string{"LAUNCHER_TEST_DO=prove"}, "1.1.0"},
		"a start is counted":      {next, nil, "1.1.0"},
	} {
		t.Run(name, func(t *testing.T) {
			kills := 0
			for _, calls := range []string{"pwrite64", "write", "fsync", "renameat,renameat2,rename", "unlinkat,unlink", "fchmod"} {
				for n := 1; ; n++ {
					m := newMachine(t, c.installed)
					if c.serves == "1.1.0" {
						// Another failed before it.
						if err := change(filepath.Dir(m.launcher), func(s *State) bool { s.Failed = &Failed{Digest: "sha256:x", Back: true}; return true }); err != nil {
							t.Fatal(err)
						}
					}
					cmd := exec.Command(strace, "-f", "-qq", "-o", "/dev/null", "-e", "trace="+calls,
						"-e", fmt.Sprintf("inject=%s:signal=KILL:when=%d", calls, n), m.launcher, "launch", m.binary)
					cmd.Env = append(c.env, "PATH="+os.Getenv("PATH"), "LAUNCHER_TEST_COPY="+m.launcher)
					out, _ := cmd.CombinedOutput()
					st := cmd.ProcessState.Sys().(syscall.WaitStatus)
					if !st.Signaled() && st.ExitStatus() != 3 {
						t.Fatalf("%s %d: %v: %s", calls, n, cmd.ProcessState, out)
					}
					if !m.is(m.launcher, good) && !m.is(m.launcher, next) {
						t.Fatalf("%s %d: the copy is neither version", calls, n)
					}
					if !m.is(m.binary, c.installed) && !m.is(m.binary, good) {
						t.Fatalf("%s %d: what is installed is neither version", calls, n)
					}
					if s := m.state(); m.is(m.binary, good) && (s.Failed == nil || !strings.HasPrefix(s.Failed.Digest, "sha256:")) {
						t.Errorf("%s %d: put back, and what failed is not known: %+v", calls, n, s)
					}
					m.host(c.serves, "prove")
					if !m.is(m.launcher, []byte(program(t, c.serves))) || !m.is(m.binary, []byte(program(t, c.serves))) || m.state().Trial != nil || (m.state().Failed != nil) != (c.serves == "1.0.0") {
						t.Errorf("%s %d: it did not come to rest: %+v", calls, n, m.state())
					}
					if s := m.state(); s.Failed != nil && !s.Failed.Back {
						t.Errorf("%s %d: that it is back is not known: %+v", calls, n, *s.Failed)
					}
					m.alone()
					if !st.Signaled() {
						break
					}
					kills++
				}
			}
			if kills < 3 {
				t.Errorf("only %d kills hit", kills)
			}
		})
	}
}
