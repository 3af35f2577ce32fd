package pack

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/release/internal/check"
)

// ours holds that what is in a directory is a release and nothing else: it will
// be removed.
//
// A release.json alone proves nothing, since anybody can write one that names
// somebody's files. It counts when a key of the publisher's signed it. Without
// that (the keys were changed, or the signature is gone) it must list what a
// release of its version has and nothing else, and each file that is there must be
// of just the size and SHA-256 that it says.
func ours(dir string, policy *trust.Policy) error {
	fi, err := os.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !fi.IsDir() {
		return fault.Failedf("it is there, and no directory").Hint("give another --out")
	}
	found, err := check.List(dir)
	if fault.KindOf(err) == fault.Refused {
		return notOurs(err)
	}
	if err != nil {
		return err
	}
	strange := ""
	if found.Has(check.ManifestName) {
		m, err := manifestOf(dir, found, policy)
		if err != nil {
			return notOurs(err)
		}
		strange = found.Strange(m)
	} else if names := found.Names(); len(names) > 0 {
		strange = filepath.Clean(names[0])
	}
	if strange != "" {
		return fault.Refusedf("%q is in it, and no file of a release", strange).Hint("%s", leave)
	}
	return nil
}

const leave = "move it elsewhere, or give another --out"

// manifestOf reads the release.json of a directory that holds a release of ours.
func manifestOf(dir string, found check.Listing, policy *trust.Policy) (Manifest, error) {
	if m, err := check.ReadManifest(dir, policy); err == nil {
		return m, nil
	}
	b, err := found.Read(check.ManifestName, check.MaxManifest)
	if err != nil {
		return Manifest{}, err
	}
	m, err := check.ParseManifest(b)
	if err != nil {
		return Manifest{}, fmt.Errorf("%q: %w", check.ManifestName, err)
	}
	if err := m.Complete(); err != nil {
		return Manifest{}, err
	}
	return m, found.HoldAll(m)
}

func notOurs(err error) error {
	return fault.Refusedf("it holds no release of ours: %w", err).Hint("%s", leave)
}
