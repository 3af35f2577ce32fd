package supervise

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestDefinitionThatCannotBeReadHalts(t *testing.T) {
	b := newBench(t, "live")
	b.write()
	shim := exec.Command(os.Args[0], "shim", "--root", b.root, "test")
	if err := os.WriteFile(filepath.Join(b.dir, DefinitionFile), []byte(`{"comand":[]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := shim.Start(); err != nil {
		t.Fatal(err)
	}
	b.shims = append(b.shims, shim)
	if s := b.phase(Halted); !strings.Contains(s.LastExit, "cannot read the definition") {
		t.Errorf("%+v", s)
	}
	b.down(shim)
}

func TestShimWithoutDefinitionSaysSo(t *testing.T) {
	b := newBench(t, "live")
	out, err := exec.Command(os.Args[0], "shim", "--root", b.root, "test").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "cannot read the definition") {
		t.Errorf("says %q, %v", out, err)
	}
}

func TestNameIsNoPath(t *testing.T) {
	for _, name := range []string{"", ".", "..", "../x", "a/b", "a b", "a\nb", "-a", "%n", "é", "A", "a.b", strings.Repeat("a", 64)} {
		if ValidName(name) {
			t.Errorf("%q is taken for a name", name)
		}
	}
	for _, name := range []string{"web", "mesh-controller", "9", strings.Repeat("a", 63)} {
		if !ValidName(name) {
			t.Errorf("%q is not taken for a name", name)
		}
	}
}

// The bytes of a definition decide whether a process is restarted, so a newer
// version must write the same for the same wish.
func TestDefinitionBytesAreStable(t *testing.T) {
	b, err := Definition{
		Command: []string{"/usr/bin/web", "serve"}, Env: []string{"A=1"}, UID: 33, GID: 33, Restart: "always",
		SuccessCodes: []int{0}, StopSignal: int(syscall.SIGTERM), StopTimeout: 10 * time.Second, FailureLimit: 5,
	}.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	const want = `{
  "command": [
    "/usr/bin/web",
    "serve"
  ],
  "env": [
    "A=1"
  ],
  "uid": 33,
  "gid": 33,
  "restart": "always",
  "success_codes": [
    0
  ],
  "stop_signal": 15,
  "stop_timeout_ns": 10000000000,
  "failure_limit": 5
}
`
	if string(b) != want {
		t.Errorf("the definition is\n%s\nwant\n%s", b, want)
	}
}
