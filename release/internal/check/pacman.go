package check

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/nox-mesh/nox-mesh/internal/durable"
	"github.com/nox-mesh/nox-mesh/release/internal/repository"
)

// pacman fetches databases and packages as a machine would that takes nothing
// unsigned, into a root of its own.
type pacman struct{}

func (pacman) needs() []string { return []string{"pacman", "gpg"} }

func (pacman) how() string {
	return "databases and packages fetched into a root of its own, nothing unsigned taken"
}

var pacmanVersion = regexp.MustCompile(`Pacman v(\S+)`)

func (pacman) version(ctx context.Context, b bench) (string, error) {
	out, err := b.run(ctx, "pacman", "--version")
	if err != nil {
		return "", fmt.Errorf("it does not run: %w", err)
	}
	m := pacmanVersion.FindStringSubmatch(out)
	if m == nil {
		return "", errors.New("it does not say its version")
	}
	if !b.root {
		return m[1], errors.New("it needs root")
	}
	return m[1], nil
}

func (p pacman) testify(ctx context.Context, b bench, r *reading) (int, error) {
	home, err := newKeyring(ctx, b, r.Policy)
	if err != nil {
		return 0, err
	}
	dir, err := filepath.Abs(r.dir)
	if err != nil {
		return 0, err
	}
	// An address has no place for every name that a folder can have.
	if err := os.Symlink(dir, b.path("release")); err != nil {
		return 0, err
	}
	version, err := r.manifest.packageVersion()
	if err != nil {
		return 0, err
	}
	n := 0
	err = r.each(repositoryName, func(arch, repo string) error {
		root, err := newRoot(b, arch, home)
		if err != nil {
			return err
		}
		db := path.Join(repo, repository.Name+".db")
		if err := root.fetch(ctx, r, db, root.path("db/sync", path.Base(db)), "-Sy"); err != nil {
			return err
		}
		n++
		for _, name := range slices.Sorted(maps.Keys(packages)) {
			file := r.manifest.packageFile(name, arch, version)
			// The dependencies are other people's.
			if err := root.fetch(ctx, r, file, root.path("cache", path.Base(file)), "-Swdd", repository.Name+"/"+name); err != nil {
				return err
			}
			n++
		}
		return nil
	})
	return n, err
}

// A root is what pacman takes for a machine of one architecture.
type root struct {
	bench
	arch, home string
}

func newRoot(b bench, arch, home string) (root, error) {
	p := root{b, arch, home}
	for _, dir := range []string{"root", "db", "cache", "hooks"} {
		if err := os.MkdirAll(p.path(dir), 0o755); err != nil {
			return p, err
		}
	}
	server := url.URL{Scheme: "file", Path: p.bench.path("release")}
	text := fmt.Sprintf("[options]\nArchitecture = %s\nSigLevel = Required DatabaseRequired\n[%s]\nServer = %s/arch/$arch\n",
		arch, repository.Name, strings.ReplaceAll(server.String(), "$", "%24"))
	return p, durable.WriteFile(p.path("pacman.conf"), []byte(text), 0o600)
}

func (p root) path(name ...string) string {
	return p.bench.path(append([]string{p.arch}, name...)...)
}

// fetch runs pacman, which must leave the file name of the release at to: that
// it ends with 0 is not enough.
func (p root) fetch(ctx context.Context, r *reading, name, to string, args ...string) error {
	args = append([]string{
		"--config", p.path("pacman.conf"), "--root", p.path("root"), "--dbpath", p.path("db"), "--cachedir", p.path("cache"),
		"--gpgdir", p.home, "--hookdir", p.path("hooks"), "--logfile", p.path("log"), "--noconfirm", "--noprogressbar",
	}, args...)
	if _, err := p.run(ctx, "pacman", args...); err != nil {
		return refuses(ctx, "pacman", name, err)
	}
	f, err := os.Open(to)
	if err != nil {
		return refuses(ctx, "pacman", name, errors.New("it says nothing, and did not fetch it"))
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return err
	}
	if hex.EncodeToString(h.Sum(nil)) != r.sums[name] {
		return refuses(ctx, "pacman", name, errors.New("it says nothing, and has another file"))
	}
	return nil
}
