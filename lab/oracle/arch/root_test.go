package arch

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// A root is a private machine of pacman's: its own files, database, cache,
// keyring and configuration.
type root struct {
	t    testing.TB
	dir  string // stands for "/"
	conf string
	env  []string
}

// newRoot makes a root that has what scriptlets need, and whose pacman takes
// nothing that is not signed by k. repository is a Server, or "".
func newRoot(t testing.TB, k *signer, repository string) *root {
	t.Helper()
	top := t.TempDir()
	r := &root{t: t, dir: filepath.Join(top, "root"), conf: filepath.Join(top, "pacman.conf")}
	for _, d := range []string{"usr/bin", "usr/lib", "usr/lib64", "var/lib/pacman", "var/cache", "etc", "tmp", "dev"} {
		if err := os.MkdirAll(filepath.Join(r.dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, d := range []string{"bin", "lib", "lib64"} {
		if err := os.Symlink("usr/"+d, filepath.Join(r.dir, d)); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range []string{"bash", "rm", "rmdir"} {
		r.program("/usr/bin/" + p)
	}
	if err := os.Symlink("bash", filepath.Join(r.dir, "usr/bin/sh")); err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("[options]\nRootDir = %[1]s\nDBPath = %[1]s/var/lib/pacman\nCacheDir = %[1]s/var/cache\nGPGDir = %[2]s\nLogFile = %[3]s/log\nHookDir = %[1]s/none\nArchitecture = auto\nSigLevel = Required DatabaseRequired\nLocalFileSigLevel = Required\n",
		r.dir, k.home, top)
	if repository != "" {
		text += "[nox-mesh]\nServer = " + repository + "\n"
	}
	file(t, r.conf, text)
	return r
}

var library = regexp.MustCompile(`(/\S+\.so\S*) \(`)

// program copies a program of this computer with its libraries into the root.
func (r *root) program(path string) {
	r.t.Helper()
	list := []string{path}
	for _, m := range library.FindAllStringSubmatch(must(r.t, "/", nil, "ldd", path), -1) {
		list = append(list, m[1])
	}
	for _, p := range list {
		must(r.t, "/", nil, "install", "-D", "-m", "755", p, filepath.Join(r.dir, p))
	}
}

func (r *root) try(args ...string) (string, error) {
	r.t.Helper()
	return try(r.t, "/", r.env, "pacman", append([]string{"--config", r.conf, "--noconfirm"}, args...)...)
}

// pacman runs pacman, which must work and complain of nothing: it exits with 0
// also when a scriptlet failed.
func (r *root) pacman(args ...string) string {
	r.t.Helper()
	out, err := r.try(args...)
	if err != nil || strings.Contains(out, "error:") {
		r.t.Fatalf("pacman %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

var counted = regexp.MustCompile(`(?m)^(\S+): (\d+) total files, (\d+) altered files?$`)

// intact checks that pacman has files to check of a package, and finds each as
// it was packed. The count matters: of a package without an .MTREE nothing is
// altered either.
func (r *root) intact(name string) (files int) {
	r.t.Helper()
	out, err := r.try("-Qkk", name)
	m := counted.FindStringSubmatch(out)
	if m == nil {
		r.t.Fatalf("pacman -Qkk %s: %v\n%s", name, err, out)
	}
	files, _ = strconv.Atoi(m[2])
	if files == 0 || m[3] != "0" || m[1] != name {
		r.t.Errorf("pacman -Qkk %s:\n%s", name, out)
	}
	return files
}

func (r *root) path(p string) string { return filepath.Join(r.dir, p) }

// snapshot is what a folder of the root holds, by path: kind, mode, owner, and of
// files time and content.
func (r *root) snapshot(dir string) map[string]string {
	r.t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(r.path(dir), func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fi, err := d.Info()
		if err != nil {
			return err
		}
		stat := fi.Sys().(*syscall.Stat_t)
		what := fmt.Sprint(fi.Mode(), " ", stat.Uid, ":", stat.Gid)
		switch {
		case fi.Mode().IsRegular():
			what += fmt.Sprint(" ", fi.ModTime().UnixNano(), " ", read(r.t, p))
		case fi.Mode()&fs.ModeSymlink != 0:
			link, err := os.Readlink(p)
			if err != nil {
				return err
			}
			what += " -> " + link
		}
		found[strings.TrimPrefix(p, r.dir)] = what
		return nil
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return found
}
