package build

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

func TestACommitIsKnownOnlyWhenTheTreeIsIt(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("git is not here")
	}
	dir := t.TempDir()
	put := func(name, text string) {
		if err := os.WriteFile(dir+"/"+name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("a.go", "package a\n")
	if c := Commit(t.Context(), dir); c != "" {
		t.Errorf("without git: %q", c)
	}
	run := func(args ...string) string {
		cmd := exec.Command(git, args...)
		cmd.Dir = dir
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("git %v: %v", args, err)
		}
		return strings.TrimSpace(string(out))
	}
	run("init", "-q")
	run("add", ".")
	run("-c", "user.name=a", "-c", "user.email=a@example.test", "-c", "commit.gpgsign=false", "commit", "-q", "-m", "x")
	want := run("rev-parse", "HEAD")
	put("notes", "not a part of any program")
	if c := Commit(t.Context(), dir); c != want {
		t.Errorf("%q, want %q", c, want)
	}
	put("b.go", "package a\n")
	if c := Commit(t.Context(), dir); c != "" {
		t.Errorf("with a file more: %q", c)
	}
	run("clean", "-fdq")
	put("a.go", "package b\n")
	if c := Commit(t.Context(), dir); c != "" {
		t.Errorf("with a change: %q", c)
	}
}

func TestCounterIsTheTimeOfTheCommit(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("git is not here")
	}
	dir := source(t)
	if _, err := CommitTime(t.Context(), dir); err == nil || !strings.Contains(fault.RemedyOf(err), "--counter") {
		t.Errorf("without a commit: %v", err)
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"-c", "user.name=a", "-c", "user.email=a@example.test", "-c", "commit.gpgsign=false", "commit", "-q", "-m", "x"}} {
		cmd := exec.Command(git, args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GIT_COMMITTER_DATE=1700000123 +0200", "GIT_CONFIG_NOSYSTEM=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	if n, err := CommitTime(t.Context(), dir); err != nil || n != 1700000123 {
		t.Errorf("%d, %v", n, err)
	}
}
