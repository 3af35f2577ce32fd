// Package dpkg is the package manager of Debian and Ubuntu, as the kind
// "package" needs it: dpkg's database, with apt-get to install.
//
// What is installed is read from dpkg's database and never asked: the status
// file, the updates that a killed dpkg left beside it, and of each package its
// list, its md5sums and its configuration files. MD5 is what dpkg has: it tells
// a damaged file, not one that somebody made to look the same.
//
// apt-get installs, also a package that is in the content store: it refuses a
// dependency it cannot meet before anything is touched, where dpkg would leave
// the package unpacked. It removes nothing else (--no-remove), keeps every
// configuration file as the administrator left it (--force-confold; the new one
// is put beside it as .dpkg-dist), and asks nothing. dpkg removes, because
// apt-get would remove dependents too.
//
// After a kill dpkg knows what is half done, and the next run of the same is
// the repair. Mend lets dpkg take in its journal, without which apt-get does not
// begin.
package dpkg

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/nox-mesh/nox-mesh/host/internal/resource/packages/command"
	"github.com/nox-mesh/nox-mesh/host/internal/resource/packages/database"
	"github.com/nox-mesh/nox-mesh/internal/child"
	"github.com/nox-mesh/nox-mesh/internal/durable"
	"github.com/nox-mesh/nox-mesh/internal/layout"
)

const (
	dpkg    = "/usr/bin/dpkg"
	dpkgDeb = "/usr/bin/dpkg-deb"
	aptGet  = "/usr/bin/apt-get"
	admin   = "/var/lib/dpkg"
)

// A Manager is dpkg and apt over the packages of a root.
type Manager struct {
	layout layout.Layout
	runner command.Runner
}

// New returns dpkg, run by the runner, for what is under the layout's root.
func New(l layout.Layout, r command.Runner) *Manager { return &Manager{l, r} }

// Name is how it is called in what people read.
func (*Manager) Name() string { return "dpkg" }

// Suffix ends the name of a package's file; apt-get goes by it.
func (*Manager) Suffix() string { return ".deb" }

// WantsSignature: a package has no signature of its own; apt's are those of
// repositories.
func (*Manager) WantsSignature() bool { return false }

// environment lets nothing ask, and nothing restart services after it.
var environment = []string{
	"DEBIAN_FRONTEND=noninteractive", "DEBCONF_NONINTERACTIVE_SEEN=true", "APT_LISTCHANGES_FRONTEND=none", "APT_LISTBUGS_FRONTEND=none",
	"NEEDRESTART_SUSPEND=1", "UCF_FORCE_CONFFOLD=1",
}

// Install installs the file, or without one what the repositories have. apt-get
// cannot install once more what is half configured ("Internal Error, No file
// name for"): that is for dpkg to finish.
func (m *Manager) Install(ctx context.Context, name, version, file string) error {
	is, err := m.Look(name)
	switch {
	case err != nil:
		return err
	case is.Broken != "" && file != "":
		return m.dpkg(ctx, "--install", "--", file)
	case is.Broken != "":
		if err := m.dpkg(ctx, "--configure", "--", name); err != nil && ctx.Err() != nil {
			return err
		}
	}
	return m.aptGet(ctx, name, version, file)
}

func (m *Manager) aptGet(ctx context.Context, name, version, file string) error {
	what := name
	switch {
	case file != "":
		what = file
	case version != "":
		what += "=" + version
	}
	args := []string{
		"-q", "-y", "--no-install-recommends", "--no-remove", "--allow-downgrades", "--reinstall",
		"-o", "DPkg::Options::=--force-confold", "-o", "DPkg::Lock::Timeout=0", "-o", "DPkg::Use-Pty=0", "-o", "APT::Color=0",
	}
	env := environment
	if !m.layout.IsMachine() {
		// apt.conf(5): this comes before the files of this machine, and instead
		// of them.
		conf := filepath.Join(m.layout.HostState(), "apt.conf")
		text := fmt.Sprintf("Dir %q;\nDir::State::status %q;\nDPkg::Options:: \"--root=%s\";\n", m.layout.Root, m.layout.Path(admin+"/status"), m.layout.Root)
		if err := errors.Join(durable.MkdirAll(m.layout.HostState(), 0o700), durable.WriteFile(conf, []byte(text), 0o600)); err != nil {
			return err
		}
		env = append(slices.Clone(env), "APT_CONFIG="+conf)
	}
	out, err := m.runner(ctx, command.Line{Path: aptGet, Args: append(args, "install", "--", what), Env: env})
	if err != nil && file == "" && (strings.Contains(out, "Unable to locate package") || strings.Contains(out, "was not found") || strings.Contains(out, "Unable to fetch")) {
		return fmt.Errorf("%w; the machine's lists of packages are renewed by \"apt-get update\"", err)
	}
	return err
}

// Remove removes the package and nothing else; its configuration stays.
func (m *Manager) Remove(ctx context.Context, name string) error {
	return m.dpkg(ctx, "--remove", "--", name)
}

func (m *Manager) dpkg(ctx context.Context, args ...string) error {
	args = append([]string{"--force-confold"}, args...)
	if !m.layout.IsMachine() {
		args = append([]string{"--root=" + m.layout.Root}, args...)
	}
	_, err := m.runner(ctx, command.Line{Path: dpkg, Args: args, Env: environment})
	return err
}

// Mend lets dpkg take in the journal that a killed run left: it does when it
// begins to change anything, and here it is told to change nothing.
func (m *Manager) Mend(ctx context.Context, _ string, _ *database.Package) error {
	left, err := m.updates()
	if err != nil || len(left) == 0 {
		return err
	}
	return m.dpkg(ctx, "--set-selections")
}

// Describe says what package the file is.
func (*Manager) Describe(ctx context.Context, file string) (name, version string, err error) {
	res, err := child.Run(ctx, child.Command{Path: dpkgDeb, Args: []string{"--field", file, "Package", "Version"}, MaxOutput: maxControl})
	if err != nil {
		return "", "", fmt.Errorf("cannot read the package: %w", err)
	}
	s := parseStanza(res.Stdout)
	if s.get("Package") == "" || s.get("Version") == "" {
		return "", "", errors.New("cannot read the package: its control file names no package")
	}
	return s.get("Package"), s.get("Version"), nil
}

// Look reads what the database says of a package.
func (m *Manager) Look(name string) (database.Package, error) {
	s, err := m.stanza(name)
	if err != nil || s == nil {
		return database.Package{}, err
	}
	p := database.Package{Version: s.get("Version")}
	words := strings.Fields(s.get("Status"))
	if len(words) != 3 {
		return p, fmt.Errorf("cannot read the package database: the status of %q is %q", name, s.get("Status"))
	}
	if words[0] == "hold" {
		p.Held = fmt.Sprintf("it is on hold; %q lets it change", "apt-mark unhold "+name)
	}
	state := words[2]
	if state == "not-installed" || state == "config-files" {
		return p, nil
	}
	p.Installed = true
	switch {
	case words[1] != "ok":
		p.Broken = fmt.Sprintf("is %s, and must be installed again (%s)", state, words[1])
	case !slices.Contains([]string{"installed", "triggers-awaited", "triggers-pending"}, state):
		p.Broken = "is " + state
	}
	if p.Files, err = m.files(s); errors.Is(err, errNoList) {
		if p.Broken == "" {
			p.Broken = err.Error()
		}
		err = nil
	}
	return p, err
}

var errNoList = errors.New("its list of files is missing in the database")

// files reads what the package consists of.
func (m *Manager) files(s *stanza) ([]database.File, error) {
	name := s.get("Package")
	read := func(suffix string) (b []byte, err error) {
		for _, n := range []string{name + ":" + s.get("Architecture"), name} { // dpkg names those of several architectures so
			if b, err = database.ReadFile(m.path("info", n+suffix), maxList); b != nil || err != nil {
				break
			}
		}
		return b, err
	}
	list, err := read(".list")
	if err != nil {
		return nil, err
	}
	if list == nil {
		return nil, errNoList
	}
	md5sums, err := read(".md5sums")
	if err != nil {
		return nil, err
	}
	sums := map[string]string{}
	for line := range strings.Lines(string(md5sums)) {
		if sum, file, ok := strings.Cut(strings.TrimRight(line, "\n"), " "); ok && len(sum) == 32 {
			sums[database.Clean(strings.TrimLeft(file, " *"))] = strings.ToLower(sum)
		}
	}
	configs := s.configs()
	left, err := m.leftOut()
	if err != nil {
		return nil, err
	}
	moved, err := m.diversions(name)
	if err != nil {
		return nil, err
	}
	out := make([]database.File, 0, bytes.Count(list, []byte("\n")))
	for line := range strings.Lines(string(list)) {
		p := database.Clean(strings.TrimRight(line, "\n"))
		if p == "/" || left.excludes(p) {
			continue
		}
		f := database.File{Path: p, Config: configs[p], Size: -1}
		if f.Sum = sums[p]; f.Sum != "" {
			f.Kind = database.Regular
		}
		if to, ok := moved[p]; ok {
			f.Path = to
		}
		out = append(out, f)
	}
	return out, nil
}

func (m *Manager) path(parts ...string) string {
	return m.layout.Path(filepath.Join(append([]string{admin}, parts...)...))
}

// updates are the names of the journal's files, in their order (dpkg writes
// numbers of four digits).
func (m *Manager) updates() ([]string, error) {
	all, err := os.ReadDir(m.path("updates"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the package database: %w", err)
	}
	var out []string
	for _, e := range all {
		if strings.Trim(e.Name(), "0123456789") == "" {
			out = append(out, m.path("updates", e.Name()))
		}
	}
	return out, nil
}

// stanza is the newest of a package, or nil. The journal is newer than the
// status file.
func (m *Manager) stanza(name string) (*stanza, error) {
	left, err := m.updates()
	if err != nil {
		return nil, err
	}
	var found []*stanza
	for _, file := range append([]string{m.path("status")}, left...) {
		b, err := database.ReadFile(file, maxStatus)
		if err != nil {
			return nil, fmt.Errorf("cannot read the package database: %w", err)
		}
		for s := range stanzas(b, name) {
			found = slices.DeleteFunc(found, func(o *stanza) bool { return o.get("Architecture") == s.get("Architecture") })
			found = append(found, s)
		}
	}
	// Of several architectures this one's, unless only the other is installed.
	slices.SortStableFunc(found, func(a, b *stanza) int { return a.rank() - b.rank() })
	if len(found) == 0 {
		return nil, nil
	}
	return found[0], nil
}

func (s *stanza) rank() int {
	rank := 0
	if a := s.get("Architecture"); a != runtime.GOARCH && a != "all" {
		rank = 1
	}
	if st := s.get("Status"); strings.HasSuffix(st, " not-installed") || strings.HasSuffix(st, " config-files") {
		rank += 2
	}
	return rank
}
