package goreleaser

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nox-mesh/nox-mesh/lab/oracle/tool"
)

// A bench is a copy of the source, committed, with keys beside it.
type bench struct {
	t   *testing.T
	dir string
}

func (b *bench) run(dir, program string, args ...string) string {
	b.t.Helper()
	c := exec.CommandContext(b.t.Context(), program, args...)
	c.Dir = filepath.Join(b.dir, dir)
	c.Env = append(os.Environ(),
		"NOX_KEYS="+filepath.Join(b.dir, "keys"), "NOX_PASSPHRASE_FILE="+filepath.Join(b.dir, "secret"),
		"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.test", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.test",
		"GIT_COMMITTER_DATE=1700000000 +0000")
	out, err := c.CombinedOutput()
	if err != nil {
		b.t.Fatalf("%s %s: %v\n%s", filepath.Base(program), strings.Join(args, " "), err, out)
	}
	return string(out)
}

func newBench(t *testing.T) *bench {
	t.Helper()
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("git is not here")
	}
	b := &bench{t: t, dir: t.TempDir()}
	source, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	list := exec.Command(git, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = source
	names, err := list.Output()
	if err != nil {
		t.Skipf("the source is not in git: %v", err)
	}
	for name := range strings.SplitSeq(strings.TrimRight(string(names), "\x00"), "\x00") {
		content, err := os.ReadFile(filepath.Join(source, name))
		if os.IsNotExist(err) {
			continue // removed, and not committed yet
		}
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(b.dir, "src", name)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b.run("src", git, "init", "-q")
	// Without a remote GoReleaser knows no commit. It is not asked for anything.
	b.run("src", git, "remote", "add", "origin", "https://example.test/nox-mesh/nox-mesh.git")
	b.run("src", git, "add", ".")
	b.run("src", git, "commit", "-q", "-m", "x")
	if err := os.WriteFile(filepath.Join(b.dir, "secret"), []byte("correct horse\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.run("src", "go", "build", "-o", filepath.Join(b.dir, "mesh-release"), "./release/cmd/mesh-release")
	b.run("", b.ours(), "keys", "init", "keys")
	return b
}

func (b *bench) ours() string { return filepath.Join(b.dir, "mesh-release") }

// TestGoReleaserMakesTheSameRelease: a snapshot by GoReleaser, and "mesh-release
// build" of the version it chose.
func TestGoReleaserMakesTheSameRelease(t *testing.T) {
	goreleaser := tool.Need(t, "goreleaser")
	b := newBench(t)
	b.run("src", goreleaser, "check")
	t.Attr("verdict", "goreleaser | check .goreleaser.yaml | accepts | builds by it")

	b.run("src", goreleaser, "release", "--snapshot", "--clean")
	b.run("", b.ours(), "verify", "--trust", "keys", "src/dist/release")
	var m struct{ Version string }
	text, err := os.ReadFile(filepath.Join(b.dir, "src/dist/release/release.json"))
	if err == nil {
		err = json.Unmarshal(text, &m)
	}
	if err != nil {
		t.Fatal(err)
	}
	if m.Version != "0.0.1-next.1700000000" {
		t.Errorf("the snapshot is version %q", m.Version)
	}
	b.run("src", b.ours(), "build", "--version", m.Version, "--keys", "../keys", "--out", "../ours")
	b.run("", "diff", "-r", "src/dist/release", "ours")
	t.Attr("verdict", "goreleaser | release --snapshot, each file beside build's | the same bytes | the same bytes")
}
