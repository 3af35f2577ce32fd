package installer

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/internal/layout"
	"github.com/nox-mesh/nox-mesh/internal/version"
	"github.com/nox-mesh/nox-mesh/pkgbuild"
)

// Install lays the host down as Options say. A tarball that does not verify is
// a fault of kind Refused and leaves the machine as it was. Calling it again
// with the same tarball changes nothing; with a newer one it is the upgrade.
func Install(ctx context.Context, o Options) (Summary, error) {
	if o.Prefix == "" {
		o.Prefix = layout.FloorPrefix
	}
	if !filepath.IsAbs(o.Prefix) || strings.ContainsFunc(o.Prefix, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return Summary{}, fault.Usagef("cannot install: the prefix %q is not absolute and plain", o.Prefix)
	}
	o.Prefix = filepath.Clean(o.Prefix)
	if o.Out == nil {
		o.Out = io.Discard
	}
	if o.Wait == 0 {
		o.Wait = time.Minute
	}
	if err := onlyRoot("install", o.Layout); err != nil {
		return Summary{}, err
	}
	if err := guarded(o.Layout, o.Prefix); err != nil {
		return Summary{}, fmt.Errorf("cannot install: %w", err)
	}
	rec, found, err := readRecord(o.Layout)
	if err != nil {
		return Summary{}, err
	}
	if err := mayInstall(o, rec); err != nil {
		return Summary{}, err
	}
	prefixes := []string{o.Prefix}
	if found && rec.Prefix != o.Prefix {
		prefixes = append(prefixes, rec.Prefix)
	}
	d, err := decide(o.Layout, prefixes, o.From, o.ExpectRoot)
	if err != nil {
		return Summary{}, err
	}
	if v := d.floor.manifest.Version; version.Older(v, rec.Version) && !o.AllowOlder {
		return Summary{}, fault.Refusedf("cannot install: version %s is older than %s, which is installed", v, rec.Version).
			Hint("fetch a newer one, or say --allow-older")
	}
	j := &job{o: o, d: d, rec: rec, unfinished: found && !rec.Complete, files: files(o, d), summary: Summary{Changed: []string{}}}
	for _, p := range j.places() {
		if err := p.usable(o.Layout); err != nil {
			return Summary{}, err
		}
	}
	if d.first {
		fmt.Fprintf(o.Out, "trusting the release root that came with this tarball: %d, sha256:%s\n", d.rootVersion, d.fingerprint)
	}
	if err := j.lay(ctx); err != nil {
		return j.summary, fmt.Errorf("cannot install: %w", err)
	}
	err = j.service(ctx)
	return j.summary, err
}

// mayInstall refuses where another install is in charge.
func mayInstall(o Options, rec record) error {
	if by, ok := packaged(o.Layout); ok {
		return fault.Refusedf("cannot install: a package owns the host on this machine (%q)", by).
			Hint("upgrade it with the package manager, or remove the package %s first", pkgbuild.HostPackage)
	}
	if rec.Prefix != "" && rec.Prefix != o.Prefix {
		if _, err := os.Lstat(o.Layout.HostBinary(rec.Prefix)); err == nil {
			return fault.Refusedf("cannot install under %q: the host is installed under %q", o.Prefix, rec.Prefix).
				Hint("use --prefix %s, or uninstall first", rec.Prefix)
		}
	}
	return nil
}

// A job is one install.
type job struct {
	o       Options
	d       *decision
	rec     record
	files   []file
	summary Summary
	// unfinished: an install before this one was killed.
	unfinished bool
	// unitChanged and binaryChanged decide what the service is asked for.
	unitChanged, binaryChanged bool
}

// A file is one small file to be laid down, at a path of the machine.
type file struct {
	path    string
	content []byte
	mode    uint32
	// theirs: a person may change it, and then it stays as it is.
	theirs bool
}

// files are all but the programs, in the order in which they are laid down:
// the trust first, the unit, which makes the rest start, last.
func files(o Options, d *decision) []file {
	var all []file
	for i, r := range d.roots {
		p := filepath.Join(layout.Layout{}.ShippedTrust(o.Prefix), filepath.Base(rootMember(i)))
		all = append(all, file{path: p, content: r, mode: 0o644})
	}
	for _, page := range pages(d.floor) {
		all = append(all, file{path: filepath.Join(o.Prefix, page), content: d.floor.small[page], mode: 0o644})
	}
	return append(all,
		file{path: layout.Layout{}.HostConfig(), content: d.floor.small[memberConfig], mode: 0o644, theirs: true},
		file{path: unitPath(), content: pkgbuild.HostUnit(layout.Layout{}.HostBinary(o.Prefix)), mode: 0o644})
}

func unitPath() string { return filepath.Join(layout.Layout{}.UnitDir(), layout.HostUnit) }

// pages are those of memberPages that the tarball holds.
func pages(f *floor) []string {
	return slices.DeleteFunc(slices.Clone(memberPages), func(path string) bool { _, ok := f.manifest.Member(path); return !ok })
}

// places are the directories of all that this install lays down.
func (j *job) places() []place {
	all := places(j.o.Layout, j.o.Prefix)
	for _, page := range pages(j.d.floor) {
		all = append(all, place{path: j.o.Layout.Path(filepath.Join(j.o.Prefix, filepath.Dir(page))), mode: 0o755, software: true})
	}
	return all
}

// places are the directories of what every install lays down; the state directory, where what is
// laid down is recorded, first.
func places(l layout.Layout, prefix string) []place {
	return []place{
		{path: l.State(), mode: 0o700},
		{path: l.LauncherDir(), mode: 0o700, programs: true},
		{path: l.ShippedTrust(prefix), mode: 0o755, software: true},
		{path: filepath.Dir(l.HostBinary(prefix)), mode: 0o755, programs: true, software: true},
		{path: filepath.Dir(l.HostConfig()), mode: 0o755},
		{path: l.UnitDir(), mode: 0o755},
	}
}
