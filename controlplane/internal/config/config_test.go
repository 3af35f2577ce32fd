package config

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

func TestParse(t *testing.T) {
	for doc, want := range map[string][]string{
		``:                                    {"[::]:7443"},
		"# nothing\n":                         {"[::]:7443"},
		`listen = "127.0.0.1:1"`:              {"127.0.0.1:1"},
		`listen = ["127.0.0.1:1", "[::1]:2"]`: {"127.0.0.1:1", "[::1]:2"},
		`listen = [":0"]`:                     {":0"},
		"listen = [\n  \"10.0.0.1:7443\", # a\n]": {"10.0.0.1:7443"},
	} {
		if c, err := Parse([]byte(doc)); err != nil || !reflect.DeepEqual(c.Listen, want) {
			t.Errorf("%q: %v, %v, want %v", doc, c.Listen, err, want)
		}
	}
}

// TestTheRepositoryIsServedWhereItIsSaid, and nowhere when nothing is said.
func TestTheRepositoryIsServedWhereItIsSaid(t *testing.T) {
	for doc, want := range map[string][]string{
		``:                                  nil,
		`listen = ":1"`:                     nil,
		`repository_listen = "[::]:7480"`:   {"[::]:7480"},
		`repository_listen = ["a:1", ":0"]`: {"a:1", ":0"},
	} {
		if c, err := Parse([]byte(doc)); err != nil || !reflect.DeepEqual(c.RepositoryListen, want) {
			t.Errorf("%q: %v, %v, want %v", doc, c.RepositoryListen, err, want)
		}
	}
	for _, doc := range []string{`repository_listen = "7480"`, `repository_listen = []`, `repository_listen = true`, `repository_listen = [1]`} {
		if _, err := Parse([]byte(doc)); err == nil || !strings.Contains(err.Error(), "repository_listen: ") {
			t.Errorf("%q: %v", doc, err)
		}
	}
}

func TestWhatIsRefusedIsNamed(t *testing.T) {
	for doc, want := range map[string]string{
		`lisen = "a:1"`:                      `"lisen"`,
		"[server]\nlisten = 'a:1'":           `"server`,
		`listen = 7443`:                      "listen",
		`listen = [1]`:                       "listen",
		`listen = []`:                        "listen",
		`listen = "7443"`:                    `"7443"`,
		`listen = "a:b"`:                     `"a:b"`,
		`listen = "a:70000"`:                 `"a:70000"`,
		`listen = `:                          "",
		"#" + strings.Repeat("x", maxSize+1): "longer",
	} {
		_, err := Parse([]byte(doc))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v does not say %q", doc, err, want)
		}
	}
}

func TestReadNamesTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "controller.toml")
	if c, err := Read(path); err != nil || c.Listen[0] != "[::]:7443" {
		t.Errorf("no file: %v, %v", c, err)
	}
	if err := os.WriteFile(path, []byte("x = 1"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(path); fault.KindOf(err) != fault.Refused || !strings.Contains(err.Error(), path) {
		t.Errorf("%v", err)
	}
}
