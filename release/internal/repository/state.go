package repository

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/nox-mesh/nox-mesh/internal/durable"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/release/internal/arch"
	"github.com/nox-mesh/nox-mesh/release/internal/place"
)

// The databases, in the order in which they are written.
const (
	filesName = Name + ".files"
	dbName    = Name + ".db"
	// longSuffix is what repo-add wants at the end of a database's name.
	longSuffix = ".tar.zst"
	sigSuffix  = ".sig"
)

// A state is what a directory holds: packages with their signatures, and what
// verified databases say of them.
type state struct {
	dir *durable.Dir // nil when it is not there
	// db and files are the databases, nil when there are none.
	db, files []byte
	items     map[string]*item // by name of the package's file
	count     int              // of all names
	old       string           // a database that repo-add(8) kept, or ""
}

// An item is one package file.
type item struct {
	Package
	// entry is what the databases say, or would say of it; nil when they do not
	// list it.
	entry *entry
	// source is where a file that is not in the directory yet comes from, and
	// info what it was when it was read.
	source string
	info   fs.FileInfo
	// signed says that the signature is to be written.
	signed bool
}

// readState reads the directory of p. One that is not there, or has no database,
// lists nothing.
func readState(p *place.Place, v Verifier) (*state, error) {
	s := &state{items: map[string]*item{}}
	dir, err := p.Dir()
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return nil, err
	}
	s.dir = dir
	if err := s.read(v); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *state) close() {
	if s.dir != nil {
		_ = s.dir.Close()
	}
}

func (s *state) read(v Verifier) error {
	hasDatabase, err := s.scan()
	if err != nil || !hasDatabase {
		return err
	}
	if s.files, err = s.verified(filesName, v); err != nil {
		return err
	}
	if s.db, err = s.verified(dbName, v); err != nil {
		return err
	}
	entries, err := readDatabase(s.files, true)
	if err != nil {
		return fault.Refusedf("cannot read %q: %w", filesName, err)
	}
	listed, err := readDatabase(s.db, false)
	if err != nil {
		return fault.Refusedf("cannot read %q: %w", dbName, err)
	}
	for name, e := range entries {
		if l := listed[name]; l == nil || !bytes.Equal(l.desc, e.desc) || len(listed) != len(entries) {
			return fault.Refusedf("%q and %q do not list the same packages", dbName, filesName)
		}
		i := s.items[e.File]
		if i == nil || i.Size != e.Size {
			return fault.Refusedf("package %q is listed, but is not there with %d bytes", e.File, e.Size)
		}
		i.Package, i.entry = e.Package, e
	}
	if len(listed) != len(entries) {
		return fault.Refusedf("%q and %q do not list the same packages", dbName, filesName)
	}
	return nil
}

// verified reads a database and its signature.
func (s *state) verified(name string, v Verifier) ([]byte, error) {
	read := func(name string, max int64) ([]byte, error) {
		f, err := openIn(s.dir, name, true)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fault.Refusedf("there is no %q", name)
		}
		if err != nil {
			return nil, err
		}
		defer f.Close()
		return readAll(f, max)
	}
	b, err := read(name, maxDatabase)
	if err != nil {
		return nil, err
	}
	sig, err := read(name+sigSuffix, maxSignature)
	if err != nil {
		return nil, err
	}
	if err := v.Verify(bytes.NewReader(b), sig); err != nil {
		return nil, fault.Refusedf("database %q: %w", name, err)
	}
	return b, nil
}

// scan looks at the names in the directory: packages, each with its signature,
// the databases, what repo-add leaves, and nothing else. A directory that holds
// more is not ours to replace.
func (s *state) scan() (hasDatabase bool, err error) {
	f, err := openIn(s.dir, ".", false)
	if err != nil {
		return false, err
	}
	defer f.Close()
	names, err := f.Readdirnames(4*maxPackages + 1)
	if err != nil && len(names) > 0 || len(names) > 4*maxPackages {
		return false, fmt.Errorf("it holds too much, or cannot be read: %w", errors.Join(err))
	}
	signatures := map[string]bool{}
	s.count = len(names)
	for _, name := range names {
		var st unix.Stat_t
		if err := unix.Fstatat(s.dir.FD(), name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return false, &fs.PathError{Op: "stat", Path: filepath.Join(s.dir.Name(), name), Err: err}
		}
		file, isSignature := strings.CutSuffix(name, sigSuffix)
		database := strings.TrimSuffix(strings.TrimSuffix(file, ".old"), longSuffix)
		// repo-add(8) leaves a symlink in the place of a database.
		isDatabase := database == dbName || database == filesName
		if is := st.Mode & unix.S_IFMT; is != unix.S_IFREG && !(is == unix.S_IFLNK && isDatabase) {
			return false, fault.Refusedf("%q is not a regular file", name).Hint("move it away")
		}
		switch {
		case isDatabase:
			if strings.HasSuffix(file, ".old") {
				s.old = name
			} else {
				hasDatabase = true
			}
		case name == dbName+longSuffix+".lck":
			return false, fault.Failedf("repo-add is at work there, or was killed").Hint("remove %q when it is not", name)
		case !strings.HasSuffix(file, arch.Extension):
			return false, fault.Refusedf("%q does not belong into a repository", name).Hint("move it away")
		case isSignature:
			signatures[file] = true
		default:
			p, err := parseFileName(name)
			if err != nil {
				return false, fault.Refusedf("a file does not belong into a repository: %w", err).Hint("move it away")
			}
			p.Size = st.Size
			s.items[name] = &item{Package: p}
		}
	}
	for name := range s.items {
		if !signatures[name] {
			return false, fault.Refusedf("package %q is not signed", name)
		}
		delete(signatures, name)
	}
	for name := range signatures {
		return false, fault.Refusedf("signature %q is of no package", name+sigSuffix).Hint("move it away")
	}
	return hasDatabase, nil
}

// newest returns the items by name of the package, the newest first.
func (s *state) newest() map[string][]*item {
	all := map[string][]*item{}
	for _, i := range s.items {
		all[i.Name] = append(all[i.Name], i)
	}
	for _, of := range all {
		sortNewest(of)
	}
	return all
}

// entries returns what the databases say, by name of the package.
func (s *state) entries() map[string]*entry {
	entries := map[string]*entry{}
	for name, of := range s.newest() {
		entries[name] = of[0].entry
	}
	return entries
}

// whole refuses a directory in which the newest package of a name is not listed,
// or something newer than what is: somebody put it there without adding it.
func (s *state) whole() error {
	for _, of := range s.newest() {
		if of[0].entry == nil {
			return fault.Refusedf("package %q is there, but was not added", of[0].File).Hint("add it, or move it away")
		}
	}
	return nil
}
