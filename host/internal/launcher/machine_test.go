package launcher

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A machine is a folder with a launcher's copy and an installed binary, both of
// them this test binary (TestMain), of which a version is what follows its end.
type machine struct {
	*testing.T
	launcher, binary string
	env              []string
}

// program is this test binary as a version of its own: what follows the end of
// an ELF file is nobody's matter.
func program(t *testing.T, version string) []byte {
	t.Helper()
	b, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	return append(b, version...)
}

// bad is a version that ends with 1 as soon as it is started.
const bad = "#!/bin/sh\necho the bad one: \"$@\"\nexit 1\n"

func newMachine(t *testing.T, installed []byte) *machine {
	t.Helper()
	dir := t.TempDir()
	m := &machine{T: t, launcher: filepath.Join(dir, "launcher/mesh-host"), binary: filepath.Join(dir, "bin/mesh-host")}
	m.put(m.launcher, program(t, "1.0.0"))
	m.put(m.binary, installed)
	return m
}

// put puts a program at path by rename, as a package manager does.
func (m *machine) put(path string, content []byte) {
	m.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		m.Fatal(err)
	}
	if err := os.WriteFile(path+".new", content, 0o755); err != nil {
		m.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		m.Fatal(err)
	}
}

// command runs a program to its end.
func (m *machine) command(program string, args ...string) (out string, code int) {
	m.Helper()
	cmd := exec.Command(program, args...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH")}, m.env...)
	b, err := cmd.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		m.Fatal(err)
	}
	return string(b), cmd.ProcessState.ExitCode()
}

// start is one start of the service; what runs to its end says who it is.
func (m *machine) start() (out string, code int) {
	m.Helper()
	return m.command(m.launcher, "launch", m.binary)
}

// host is a start that a host of the version comes of, which does the things and
// ends.
func (m *machine) host(version string, things ...string) string {
	m.Helper()
	before := m.env
	m.env = append(m.env[:len(m.env):len(m.env)], "LAUNCHER_TEST_DO="+strings.Join(things, ","), "LAUNCHER_TEST_COPY="+m.launcher)
	out, code := m.start()
	m.env = before
	if code != 3 || !strings.Contains(out, "host "+version+" ") {
		m.Fatalf("exit %d, no host %s: %s", code, version, out)
	}
	return out
}

func (m *machine) state() State {
	m.Helper()
	s, err := known(filepath.Dir(m.launcher))
	if err != nil {
		m.Fatal(err)
	}
	return s
}

// is reports whether the program at path has the content.
func (m *machine) is(path string, content []byte) bool {
	m.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		m.Fatal(err)
	}
	return bytes.Equal(b, content)
}

// alone fails when anything lies beside the programs and the state.
func (m *machine) alone() {
	m.Helper()
	for _, dir := range []string{filepath.Dir(m.launcher), filepath.Dir(m.binary)} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			m.Fatal(err)
		}
		for _, e := range entries {
			if e.Name() != "mesh-host" && e.Name() != StateFile {
				m.Errorf("%q is left in %q", e.Name(), dir)
			}
		}
	}
}

// TestMain makes the test binary a launcher ("launch", "post") and a host
// ("run").
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "launch":
			os.Exit(Main(os.Args[2:]))
		case "post":
			os.Exit(Post())
		case "run":
			os.Exit(asHost())
		}
	}
	os.Exit(m.Run())
}

// asHost says who it is, and does what it is told to.
func asHost() int {
	b, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		fmt.Println(err)
		return 4
	}
	copied := os.Getenv("LAUNCHER_TEST_COPY")
	fmt.Printf("host %s %d %s %s given %q\n", b[bytes.LastIndexByte(b, 0)+1:], os.Getpid(), strings.Join(os.Args[1:], " "), os.Getenv("NOTIFY_SOCKET"), Given(copied))
	for thing := range strings.SplitSeq(os.Getenv("LAUNCHER_TEST_DO"), ",") {
		var err error
		switch thing {
		case "prove":
			var proved bool
			proved, err = Prove(copied)
			fmt.Println("proved:", proved)
		case "introduce":
			err = Introduce(filepath.Dir(copied), "9.9.9")
		case "stop":
			err = StoppedByRequest(filepath.Dir(copied))
		}
		if err != nil {
			fmt.Println(err)
			return 4
		}
	}
	return 3
}
