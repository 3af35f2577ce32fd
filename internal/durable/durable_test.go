package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func names(t *testing.T, dir string) string {
	t.Helper()
	es, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var n []string
	for _, e := range es {
		n = append(n, e.Name())
	}
	return strings.Join(n, " ")
}

func TestF07WriteFileHasExactlyTheModeWhateverTheUmask(t *testing.T) {
	for _, umask := range []int{0, 0o077} {
		old := syscall.Umask(umask)
		dir := t.TempDir()
		path := filepath.Join(dir, "f")
		err := WriteFile(path, []byte("x"), 0o4751)
		syscall.Umask(old)
		if err != nil {
			t.Fatal(err)
		}
		fi, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := fi.Mode(); got != 0o751|fs.ModeSetuid {
			t.Errorf("umask %o: mode %v", umask, got)
		}
		if got := names(t, dir); got != "f" {
			t.Errorf("left in the directory: %s", got)
		}
	}
}

func TestAbortLeavesTheOldFileAndNothingElse(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	if err := WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	p, err := d.Create("f", Perm(0o600))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Write([]byte("new")); err != nil {
		t.Fatal(err)
	}
	p.Abort()
	if b, _ := os.ReadFile(path); string(b) != "old" || names(t, dir) != "f" {
		t.Errorf("content %q, directory %s", b, names(t, dir))
	}
}

func TestF09CreateTakesOverWhatACrashLeft(t *testing.T) {
	dir := t.TempDir()
	stale := filepath.Join(dir, TempName("f"))
	if err := os.WriteFile(stale, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := WriteFile(filepath.Join(dir, "f"), []byte("new"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := names(t, dir); got != "f" {
		t.Errorf("left in the directory: %s", got)
	}
}

func TestF02WriteFileReplacesASymlinkAndNotItsTarget(t *testing.T) {
	dir := t.TempDir()
	target, link := filepath.Join(dir, "target"), filepath.Join(dir, "link")
	if err := os.WriteFile(target, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("target", link); err != nil {
		t.Fatal(err)
	}
	if err := WriteFile(link, []byte("new"), 0o600); err != nil {
		t.Fatal(err)
	}
	if b, _ := os.ReadFile(target); string(b) != "mine" {
		t.Errorf("the target was written: %q", b)
	}
	if fi, _ := os.Lstat(link); !fi.Mode().IsRegular() {
		t.Errorf("link is %v", fi.Mode())
	}
}

func TestF11WriteFileOverADirectoryFailsAndLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "f"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := WriteFile(filepath.Join(dir, "f"), []byte("x"), 0o600); err == nil {
		t.Fatal("no error")
	}
	if got := names(t, dir); got != "f" {
		t.Errorf("left in the directory: %s", got)
	}
}

func TestMkdirAll(t *testing.T) {
	old := syscall.Umask(0o077)
	defer syscall.Umask(old)
	dir := t.TempDir()
	if err := MkdirAll(filepath.Join(dir, "a/b"), 0o755); err != nil {
		t.Fatal(err)
	}
	if fi, _ := os.Stat(filepath.Join(dir, "a/b")); fi.Mode().Perm() != 0o755 {
		t.Errorf("mode %v", fi.Mode())
	}
	if err := os.WriteFile(filepath.Join(dir, "f"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := MkdirAll(filepath.Join(dir, "f"), 0o755); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("over a file: %v", err)
	}
}

func TestF09MkdirAllTakesAwayWhatTheDeadLeft(t *testing.T) {
	dir := t.TempDir()
	dead := exec.Command("true")
	if err := dead.Run(); err != nil {
		t.Skip("true(1) is not here")
	}
	for _, name := range []string{fmt.Sprintf(".nox-%d-1.tmp", dead.Process.Pid), fmt.Sprintf(".nox-%d-999.tmp", os.Getpid()), ".nox-me.tmp"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := MkdirAll(filepath.Join(dir, "a"), 0o755); err != nil {
		t.Fatal(err)
	}
	if got, want := names(t, dir), fmt.Sprintf(".nox-%d-999.tmp .nox-me.tmp a", os.Getpid()); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestTempNameFitsBesideTheLongestName(t *testing.T) {
	if got := TempName(strings.Repeat("x", 255)); len(got) > 64 || !strings.HasPrefix(got, ".") {
		t.Errorf("%q", got)
	}
}
