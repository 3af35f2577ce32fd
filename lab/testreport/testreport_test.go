package testreport

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// goTest runs the real go test -json over packages of one file each, and
// returns the stream of each package.
func goTest(t *testing.T, sources map[string]string) map[string]string {
	t.Helper()
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("there is no go command here")
	}
	dir := t.TempDir()
	files := map[string]string{"go.mod": "module example.test\n\ngo 1.26\n"}
	for name, source := range sources {
		files[name+"/m_test.go"] = source
	}
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("go", "test", "-json", "./...")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off")
	out, _ := cmd.Output() // a failing test is a failing command
	streams := map[string]string{}
	for line := range strings.Lines(string(out)) {
		for name := range sources {
			if strings.Contains(line, `"example.test/`+name+`"`) || strings.Contains(line, `"example.test/`+name+" ") {
				streams[name] += line
			}
		}
	}
	return streams
}

func TestReport(t *testing.T) {
	const head = "package m\n\nimport \"testing\"\n\n"
	cases := map[string]struct {
		source  string
		ok      bool
		has     []string
		hasNone []string
	}{
		"passed": {
			source:  head + `func TestA(t *testing.T) { t.Log("chatter") }`,
			ok:      true,
			has:     []string{"ok  \texample.test/passed\t", "1 tests passed, 0 failed, 0 were skipped, in 1 packages"},
			hasNone: []string{"chatter", "PASS"},
		},
		"skipped": {
			source: head + `func TestA(t *testing.T) { t.Skip("needs: a moon") }; func TestB(t *testing.T) {}`,
			ok:     true,
			has:    []string{"1 tests passed, 0 failed, 1 were skipped", "skipped: example.test/skipped TestA: needs: a moon"},
		},
		"failed": {
			source: head + `func TestA(t *testing.T) { t.Run("sub", func(t *testing.T) { t.Fatal("why") }) }`,
			has:    []string{"why", "FAIL\texample.test/failed\t", "0 tests passed, 2 failed"},
		},
		"panicked": {
			source: head + `func TestA(t *testing.T) { panic("why") }`,
			has:    []string{"why", "FAIL\texample.test/panicked\t"},
		},
		"exited": {
			source: "package m\n\nimport (\"os\"; \"testing\")\n\n" + `func TestA(t *testing.T) { os.Exit(3) }`,
			has:    []string{"FAIL\texample.test/exited\t"},
		},
		"broken": {
			source: head + `func TestA(t *testing.T) { nothing() }`,
			has:    []string{"undefined: nothing", "FAIL\texample.test/broken [build failed]"},
		},
	}
	sources := map[string]string{}
	for name, c := range cases {
		sources[name] = c.source
	}
	streams := goTest(t, sources)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			ok, err := Write(&out, strings.NewReader(streams[name]), nil)
			if err != nil || ok != c.ok {
				t.Errorf("ok is %v, error %v", ok, err)
			}
			for _, s := range c.has {
				if !strings.Contains(out.String(), s) {
					t.Errorf("it does not say %q", s)
				}
			}
			for _, s := range c.hasNone {
				if strings.Contains(out.String(), s) {
					t.Errorf("it says %q", s)
				}
			}
			if t.Failed() {
				t.Logf("it says:\n%s", &out)
			}
		})
	}
}

func TestNothingTestedIsAFailure(t *testing.T) {
	var out bytes.Buffer
	if ok, err := Write(&out, strings.NewReader("go: cannot find main module\n"), nil); ok || err != nil {
		t.Errorf("ok is %v, error %v", ok, err)
	}
	if !strings.Contains(out.String(), "cannot find main module") {
		t.Errorf("it keeps the reason back: %s", &out)
	}
}

func TestASkipThatIsNotExpectedFails(t *testing.T) {
	const stream = `{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:1: zstd is not here\n"}
{"Action":"skip","Package":"p","Test":"TestA"}
{"Action":"pass","Package":"p"}
`
	for name, c := range map[string]struct {
		expected []string
		ok       bool
	}{
		"anything may be skipped": {nil, true},
		"it may":                  {[]string{"p TestB", "p TestA"}, true},
		"it may not":              {[]string{"p TestB"}, false},
	} {
		var out strings.Builder
		ok, err := Write(&out, strings.NewReader(stream), c.expected)
		if ok != c.ok || err != nil || !strings.Contains(out.String(), "p TestA: zstd is not here") {
			t.Errorf("%s: %v, %v\n%s", name, ok, err, &out)
		}
	}
}
