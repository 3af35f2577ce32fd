package check

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// maxFiles bounds what a directory of a release may hold.
const maxFiles = 4096

// A Listing is what a directory holds: regular files, in folders.
type Listing struct {
	dir   string
	files map[string]int64 // sizes by name
	// folders end with a slash.
	folders []string
}

// List takes down what dir holds.
func List(dir string) (Listing, error) {
	l := Listing{dir: dir, files: map[string]int64{}}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if len(l.files)+len(l.folders) == maxFiles {
			return fault.Refusedf("it holds more than %d files", maxFiles)
		}
		if d.IsDir() {
			l.folders = append(l.folders, name+"/")
			return nil
		}
		if !d.Type().IsRegular() {
			return bad(name, "it is not a regular file")
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		l.files[name] = info.Size()
		return nil
	})
	return l, err
}

// Has reports whether there is a file of that name.
func (l Listing) Has(name string) bool {
	_, ok := l.files[name]
	return ok
}

// Names are all names, folders with a slash at their end.
func (l Listing) Names() []string {
	return slices.Sorted(slices.Values(slices.Concat(l.folders, slices.Collect(maps.Keys(l.files)))))
}

// Strange returns the first name, of a file or folder, that a release of m does
// not have; "" when there is none. A folder without a file of the release is one.
func (l Listing) Strange(m Manifest) string {
	known := map[string]bool{}
	for _, name := range m.Names() {
		known[name] = true
		for above := filepath.Dir(name); above != "."; above = filepath.Dir(above) {
			known[above+"/"] = true
		}
	}
	for _, name := range l.Names() {
		if !known[name] {
			return filepath.Clean(name)
		}
	}
	return ""
}

func (l Listing) open(name string) (*os.File, error) { return os.Open(filepath.Join(l.dir, name)) }

// Read reads a file that may have max bytes.
func (l Listing) Read(name string, max int64) ([]byte, error) {
	size, ok := l.files[name]
	if !ok {
		return nil, bad(name, "it is not there")
	}
	if size > max {
		return nil, bad(name, "it has more than %d bytes", max)
	}
	f, err := l.open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, max+1))
	if err == nil && int64(len(b)) != size {
		err = bad(name, "it changes while it is read")
	}
	return b, err
}

// Hold holds that a file is there, as f says.
func (l Listing) Hold(f File) error {
	size, ok := l.files[f.Name]
	if !ok {
		return bad(f.Name, "it is listed, and not there")
	}
	if size != f.Size {
		return bad(f.Name, "it has %d bytes, not %d", size, f.Size)
	}
	in, err := l.open(f.Name)
	if err != nil {
		return err
	}
	defer in.Close()
	h := sha256.New()
	if _, err := io.Copy(h, in); err != nil {
		return err
	}
	if sum := hex.EncodeToString(h.Sum(nil)); sum != f.SHA256 {
		return bad(f.Name, "its SHA-256 is %s, not %s", sum, f.SHA256)
	}
	return nil
}

// HoldAll holds that whatever there is of a release of m is what m says. Signatures
// that m does not list must be of what they lie beside, by whatever key.
func (l Listing) HoldAll(m Manifest) error {
	for _, f := range m.Files {
		if l.Has(f.Name) {
			if err := l.Hold(f); err != nil {
				return err
			}
		}
	}
	if l.Has(SumsName) {
		b, err := l.Read(SumsName, MaxManifest)
		if err != nil {
			return err
		}
		if !bytes.Equal(b, m.Sums()) {
			return bad(SumsName, "it does not say what %s says", ManifestName)
		}
	}
	if err := l.holdUnlisted(); err != nil {
		return err
	}
	for _, name := range []string{ManifestName, SumsName} {
		if !l.Has(name + trust.SignatureSuffix) {
			continue
		}
		b, err := l.Read(name, MaxManifest)
		if err == nil {
			err = l.written(name, digest.FromBytes(b))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// HoldSignatures holds that the signatures beside files have the sizes that m
// says, so that whoever reads them whole reads no more than that.
func (l Listing) HoldSignatures(m Manifest) error {
	for _, f := range m.Files {
		if isSignature(f.Name) && l.Has(f.Name) && l.files[f.Name] != f.Size {
			return bad(f.Name, "it has %d bytes, not %d", l.files[f.Name], f.Size)
		}
	}
	return l.holdUnlisted()
}

// holdUnlisted holds that the signatures that no list says are as small as any.
func (l Listing) holdUnlisted() error {
	for _, name := range []string{ManifestName, SumsName} {
		if name += trust.SignatureSuffix; l.files[name] > trust.MaxSignature {
			return bad(name, "it has more than %d bytes", trust.MaxSignature)
		}
	}
	return nil
}
