package repository

import (
	"bytes"
	"encoding/hex"
	"maps"
	"slices"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// add takes the package at path into the set. It returns its file name, or "" when
// nothing changes.
func (s *state) add(path string, o Options) (string, error) {
	e, info, err := inspect(path, o)
	if err != nil {
		return "", err
	}
	n := &item{Package: e.Package, entry: e, source: path, info: info, signed: true}
	for _, i := range s.items {
		if i.Arch != "any" && e.Arch != "any" && i.Arch != e.Arch {
			return "", fault.Refusedf("it is for %q, the repository has packages for %q", e.Arch, i.Arch)
		}
		if i.Name == e.Name && i.File != e.File && CompareVersions(i.Version, e.Version) == 0 {
			return "", fault.Refusedf("%q is there already, of the same version", i.File)
		}
	}
	i := s.items[e.File]
	if i == nil {
		if len(s.items) == maxPackages {
			return "", fault.Refusedf("the repository has %d packages already", maxPackages)
		}
		s.items[e.File] = n
		return e.File, nil
	}
	there, signature, err := s.look(i)
	if err != nil {
		return "", err
	}
	if there != e.SHA256 {
		return "", fault.Refusedf("%q is there already with other bytes", e.File).Hint("raise the pkgrel")
	}
	same := bytes.Equal(signature, e.signature)
	if same && i.entry != nil && bytes.Equal(i.entry.desc, e.desc) {
		return "", nil
	}
	// The file stays; what is said of it, or its signature, is new.
	n.source, n.info, n.signed = i.source, i.info, !same
	if i.signed {
		n.signed = true
	}
	older := slices.ContainsFunc(slices.Collect(maps.Values(s.items)), func(j *item) bool {
		return j.Name == i.Name && j.entry != nil && CompareVersions(j.Version, i.Version) > 0
	})
	s.items[e.File] = n
	if older && same {
		return "", nil // kept, and not listed before or after
	}
	return e.File, nil
}

// look returns the SHA-256 and the signature of a file that is in the set.
func (s *state) look(i *item) (sum string, signature []byte, err error) {
	if i.source != "" {
		return i.entry.SHA256, i.entry.signature, nil
	}
	f, err := openIn(s.dir, i.File, false)
	if err != nil {
		return "", nil, err
	}
	defer f.Close()
	d, err := digestOf(f)
	if err != nil {
		return "", nil, err
	}
	g, err := openIn(s.dir, i.File+sigSuffix, false)
	if err != nil {
		return "", nil, err
	}
	defer g.Close()
	signature, err = readAll(g, maxSignature)
	return hex.EncodeToString(d[:]), signature, err
}
