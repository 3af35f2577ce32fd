package installer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/internal/durable"
	"github.com/nox-mesh/nox-mesh/internal/layout"
	"github.com/nox-mesh/nox-mesh/pkgbuild"
	"golang.org/x/sys/unix"
)

// lay does the work. After the state directory is there the intent is
// recorded, then everything is made, then the record says what is.
func (j *job) lay(ctx context.Context) error {
	l := j.o.Layout
	places := j.places()
	if err := j.directory(places[0]); err != nil {
		return err
	}
	unlock, err := lock(l.State())
	if err != nil {
		return err
	}
	defer unlock()
	binary := layout.Layout{}.HostBinary(j.o.Prefix)
	member, _ := j.d.floor.manifest.Member(memberBinary)
	done := j.intend(binary, member.SHA256, places)
	if err := j.rec.write(l); err != nil {
		return err
	}
	for _, p := range places[1:] {
		if err := j.directory(p); err != nil {
			return err
		}
	}
	if err := j.trust(); err != nil {
		return err
	}
	unit := len(j.files) - 1
	for _, f := range j.files[:unit] {
		if _, err := j.file(f); err != nil {
			return err
		}
	}
	if err := j.launcher(ctx); err != nil {
		return err
	}
	if err := j.binary(ctx, binary, member.SHA256); err != nil {
		return err
	}
	if j.unitChanged, err = j.file(j.files[unit]); err != nil {
		return err
	}
	for path, sum := range done {
		j.rec.set(path, sum)
	}
	j.summary.Version, j.summary.Binary = j.d.floor.manifest.Version, binary
	j.summary.Root, j.summary.RootVersion, j.summary.First = "sha256:"+j.d.fingerprint, j.d.rootVersion, j.d.first
	j.rec.Version, j.rec.Complete = j.d.floor.manifest.Version, true
	return j.rec.write(l)
}

// trust records the release root in force before a program is put in place: from
// then on nothing that lies on the disk can put an older one in its place, not
// even after an uninstall, which keeps the state.
func (j *job) trust() error {
	path := j.o.Layout.TrustState()
	if err := durable.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return trust.Record(path, j.d.policy, nil)
}

// intend makes the record name everything that is about to be laid down,
// beside what was there before and is ours, and returns what it shall name at
// the end.
func (j *job) intend(binary, sum string, places []place) map[string]string {
	before, missing := j.rec.encode(), false
	j.rec.Schema, j.rec.Prefix = recordSchema, j.o.Prefix
	// The state directory is ours by its name: whether it was there before the
	// record in it cannot be known from the record.
	j.made(j.o.Layout.State())
	for _, p := range places {
		for dir := p.path; dir != j.o.Layout.Path("/"); dir = filepath.Dir(dir) {
			if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
				j.made(dir)
				missing = true
			}
		}
	}
	done := map[string]string{binary: sum}
	for _, f := range j.files {
		if have, _, err := look(j.o.Layout.Path(f.path)); f.theirs && err == nil && have != "" &&
			have != fingerprint(f.content) && !slices.Contains(j.rec.digests(f.path), have) {
			continue
		}
		done[f.path] = fingerprint(f.content)
	}
	for _, path := range slices.Sorted(maps.Keys(done)) {
		if old := j.rec.digests(path); !slices.Contains(old, done[path]) {
			j.rec.set(path, append(slices.Clone(old), done[path])...)
		}
	}
	if missing || !bytes.Equal(before, j.rec.encode()) {
		j.rec.Complete = false
	}
	return done
}

// made records that an install makes the directory dir.
func (j *job) made(dir string) {
	path := j.machine(dir)
	if !slices.Contains(j.rec.Directories, path) {
		j.rec.Directories = append(j.rec.Directories, path)
		slices.Sort(j.rec.Directories)
	}
}

// directory makes a directory. The state's own are private whatever happened to
// them; the mode of another is set when a killed install may not have come to
// it, and is otherwise a person's to change.
func (j *job) directory(p place) error {
	made, err := p.make()
	for _, dir := range made {
		j.made(dir)
	}
	if err != nil {
		return err
	}
	if p.mode == 0o700 {
		return setMode(p.path, p.mode)
	}
	for dir := p.path; j.unfinished && dir != j.o.Layout.Path("/"); dir = filepath.Dir(dir) {
		if slices.Contains(j.rec.Directories, j.machine(dir)) {
			if err := setMode(dir, p.mode); err != nil {
				return err
			}
		}
	}
	return nil
}

func setMode(dir string, mode uint32) error {
	fi, err := os.Stat(dir)
	if err != nil || uint32(fi.Mode().Perm()) == mode {
		return err
	}
	d, err := durable.OpenDir(filepath.Dir(dir))
	if err != nil {
		return err
	}
	defer d.Close()
	return d.SetAttr(filepath.Base(dir), durable.Perm(mode))
}

// file lays one file down and reports whether it had to.
func (j *job) file(f file) (bool, error) {
	path := j.o.Layout.Path(f.path)
	have, mode, err := look(path)
	if err != nil {
		return false, err
	}
	same := have == fingerprint(f.content)
	if f.theirs && have != "" && !same && !slices.Contains(j.rec.digests(f.path), have) {
		j.summary.Kept = append(j.summary.Kept, f.path)
		fmt.Fprintf(j.o.Out, "kept %s, which was changed here\n", f.path)
		return false, nil
	}
	own, err := mine(path)
	if err != nil {
		return false, err
	}
	if same && own && (f.theirs || mode == f.mode) {
		return false, nil
	}
	if err := durable.WriteFile(path, f.content, f.mode); err != nil {
		return false, err
	}
	j.wrote(f.path)
	return true, nil
}

// launcher lays the launcher copy down where there is none that is known. One
// that an install brought is a proven version, and only another proven version
// replaces it: that is the host's to do. Any other is replaced and never run:
// root would execute what somebody left there.
func (j *job) launcher(ctx context.Context) error {
	path := j.o.Layout.Launcher()
	have, mode, err := look(path)
	if err != nil {
		return err
	}
	own, err := mine(path)
	if err != nil {
		return err
	}
	if own && mode == 0o755 && slices.Contains(j.programs(), have) {
		j.rec.Launcher = have
		return nil
	}
	if err := j.d.floor.program(ctx, path); err != nil {
		return err
	}
	member, _ := j.d.floor.manifest.Member(memberBinary)
	j.rec.Launcher = member.SHA256
	j.wrote(pkgbuild.LauncherPath)
	return nil
}

// programs are the digests of all binaries that an install is known to have
// brought. The record holds this one's since intend.
func (j *job) programs() []string {
	known := []string{j.rec.Launcher}
	for _, f := range j.rec.Files {
		if filepath.Base(f.Path) == memberBinary {
			known = append(known, f.SHA256...)
		}
	}
	return slices.DeleteFunc(known, func(sum string) bool { return sum == "" })
}

// machine returns the path of the machine for one that Layout.Path made.
func (j *job) machine(path string) string {
	return filepath.Join("/", strings.TrimPrefix(path, j.o.Layout.Root))
}

func (j *job) binary(ctx context.Context, path, sum string) error {
	have, mode, err := look(j.o.Layout.Path(path))
	if err != nil {
		return err
	}
	own, err := mine(j.o.Layout.Path(path))
	if err != nil {
		return err
	}
	if have == sum && own && mode == 0o755 {
		return nil
	}
	if err := j.d.floor.program(ctx, j.o.Layout.Path(path)); err != nil {
		return err
	}
	j.binaryChanged = true
	j.wrote(path)
	return nil
}

func (j *job) wrote(path string) {
	j.summary.Changed = append(j.summary.Changed, path)
	fmt.Fprintf(j.o.Out, "installed %s\n", path)
}

// lock keeps a second install or uninstall out until the program ends or
// unlock is called.
func lock(dir string) (unlock func(), err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		return nil, fmt.Errorf("another install or uninstall is at work here")
	}
	return func() { f.Close() }, nil
}
