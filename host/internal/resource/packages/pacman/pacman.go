// Package pacman is the package manager of Arch Linux, as the kind "package"
// needs it.
//
// What is installed is read from the local database, one folder for each
// package (NAME-VERSION with desc, files and mtree), and never asked: `pacman
// -Q` calls a package installed that pacman was killed in the middle of.
//
// pacman 6 and 7 write the entry of a package last, and take the old one away
// before. Killed in between it leaves a hollow entry, or none, and files that
// nobody owns; the next run then stops at the entry, or at the files. Mend
// writes an entry that says what is there, so that the run after it is an
// ordinary one: nothing is ever forced (--overwrite, -dd).
//
// db.lck is a file that a living pacman has open. One that no process has open
// is abandoned; the kind decides when it is taken away.
//
// Signatures are checked by pacman as the machine's pacman.conf says, besides
// what the host has checked.
package pacman

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/nox-mesh/nox-mesh/host/internal/resource/packages/command"
	"github.com/nox-mesh/nox-mesh/host/internal/resource/packages/database"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/internal/layout"
)

const program = "/usr/bin/pacman"

// A Manager is pacman over the packages of a root.
type Manager struct {
	layout layout.Layout
	runner command.Runner
}

// New returns pacman, run by the runner, for what is under the layout's root.
func New(l layout.Layout, r command.Runner) *Manager { return &Manager{l, r} }

// Name is how it is called in what people read.
func (*Manager) Name() string { return "pacman" }

// Suffix ends the name of a package's file.
func (*Manager) Suffix() string { return ".pkg.tar" }

// WantsSignature: a package comes with a detached signature.
func (*Manager) WantsSignature() bool { return true }

// Install installs the file, or without one what the repositories have. That
// the version is there already is no reason not to: the kind has looked. The lists
// are used as they are: with newer ones (-Sy) one package would be of another day
// than the rest, which Arch does not support (a partial upgrade), and all of the
// machine is not the host's to upgrade.
func (m *Manager) Install(ctx context.Context, name, version, file string) error {
	if file != "" {
		return m.run(ctx, "-U", "--", file)
	}
	if version != "" {
		name += "=" + version
	}
	err := m.run(ctx, "-S", "--", name)
	if err != nil && (strings.Contains(err.Error(), "target not found") || strings.Contains(err.Error(), "failed retrieving file")) {
		return fmt.Errorf("%w; the machine's lists of packages are renewed by \"pacman -Syu\", with all that is installed", err)
	}
	return err
}

// cached is where pacman keeps what it fetched (pacman.conf(5), CacheDir).
const cached = "/var/cache/pacman/pkg"

// Cached is the file of a package that pacman fetched once, or "".
func (m *Manager) Cached(name, version string) string {
	// The name ends with the architecture and the compressor.
	found, err := filepath.Glob(filepath.Join(m.layout.Path(cached), name+"-"+version+"-*.pkg.tar*"))
	if err != nil {
		return ""
	}
	for _, f := range found {
		if !strings.HasSuffix(f, ".sig") && !strings.HasSuffix(f, ".part") {
			return f
		}
	}
	return ""
}

// Remove removes the package and nothing else.
func (m *Manager) Remove(ctx context.Context, name string) error { return m.run(ctx, "-R", "--", name) }

// run runs pacman. It exits with 0 also when a scriptlet failed (alpm.h:
// scriptlets never fail a transaction), and then says so.
func (m *Manager) run(ctx context.Context, args ...string) error {
	args = append([]string{"--noconfirm", "--noprogressbar", "--color=never"}, args...)
	if !m.layout.IsMachine() {
		args = append([]string{
			"--root", m.layout.Root, "--dbpath", m.layout.Path("/var/lib/pacman"), "--config", m.layout.Path(config),
			"--cachedir", m.layout.Path(cached), "--gpgdir", m.layout.Path("/etc/pacman.d/gnupg"),
			"--hookdir", m.layout.Path("/etc/pacman.d/hooks"), "--logfile", m.layout.Path("/var/log/pacman.log"),
		}, args...)
	}
	out, err := m.runner(ctx, command.Line{Path: program, Args: args})
	if err != nil {
		return err
	}
	for _, failed := range []string{"error: command failed to execute correctly", "error: command terminated by signal"} {
		if strings.Contains(out, failed) {
			return fault.Failedf("a scriptlet of it failed: %s", command.Before(out, failed))
		}
	}
	return nil
}

// Look reads what the database says of a package.
func (m *Manager) Look(name string) (database.Package, error) {
	conf, err := m.config()
	if err != nil {
		return database.Package{}, err
	}
	dirs, err := m.entries(conf, name)
	if err != nil || len(dirs) == 0 {
		return database.Package{Held: conf.holds(name, nil)}, err
	}
	e, err := readEntry(dirs[len(dirs)-1])
	if err != nil {
		return database.Package{}, err
	}
	p := database.Package{Installed: true, Version: e.version, Broken: e.broken(), Held: conf.holds(name, e.groups)}
	if len(dirs) > 1 {
		p.Broken = fmt.Sprintf("has %d entries in the database", len(dirs))
	}
	p.Files = e.wanted(conf)
	return p, nil
}

// local is the folder of the entries.
func (m *Manager) local(c *conf) string { return filepath.Join(m.layout.Path(c.database), "local") }

// entries are the folders of a package; more than one only after a kill.
func (m *Manager) entries(c *conf, name string) ([]string, error) {
	local := m.local(c)
	d, err := os.Open(local)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the package database: %w", err)
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("cannot read the package database: %w", err)
	}
	var found []string
	for _, n := range names {
		if of, _ := splitEntry(n); of == name {
			found = append(found, filepath.Join(local, n))
		}
	}
	return found, nil
}

// splitEntry splits NAME-VERSION-RELEASE; neither of the last two has a "-".
func splitEntry(dir string) (name, version string) {
	i := strings.LastIndexByte(dir, '-')
	if i < 1 {
		return "", ""
	}
	if i = strings.LastIndexByte(dir[:i], '-'); i < 1 {
		return "", ""
	}
	return dir[:i], dir[i+1:]
}
