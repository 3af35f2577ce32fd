package recipe

import (
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"strconv"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/bundle"
	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// In valid JSON a quote inside a string is escaped, so neither pattern can
// match in the middle of one: `\"source\"` ends in a backslash and a quote.
var (
	sourcePattern     = regexp.MustCompile(`("source"\s*:\s*)"file:([^"\\]*)"`)
	generationPattern = regexp.MustCompile(`("generation"\s*:\s*)"counter"`)
)

// Spec returns what bundle.Build needs, but for the roots, the signers and the
// creation time, which are the publisher's. Fill was called before.
func (r *Recipe) Spec(counter uint64) (bundle.Spec, error) {
	s := bundle.Spec{
		Name: r.Name, Version: r.Version, Architecture: r.Architecture,
		MinimumHost: r.MinimumHost, Counter: counter,
	}
	byTitle := map[string]digest.Digest{}
	for _, f := range r.Files {
		b, err := blob(f)
		if err != nil {
			return s, err
		}
		byTitle[f.Title] = b.Digest
		s.Payload = append(s.Payload, b)
	}
	for _, name := range r.Declarations {
		d, err := r.declaration(name, byTitle, counter)
		if err != nil {
			return s, err
		}
		s.Declarations = append(s.Declarations, d)
	}
	return s, closed(s)
}

// blob describes a file; Build hashes it again as it copies it.
func blob(f File) (bundle.Blob, error) {
	file, err := open(f.Path)
	if err != nil {
		return bundle.Blob{}, fmt.Errorf("cannot read file %q: %w", f.Title, err)
	}
	defer file.Close()
	h := digest.SHA256.Digester()
	n, err := io.Copy(h.Hash(), file)
	if err != nil {
		return bundle.Blob{}, fmt.Errorf("cannot read file %q: %w", f.Title, err)
	}
	return bundle.Blob{
		Digest: h.Digest(), Size: n, Title: f.Title,
		Open: func() (io.ReadCloser, error) { return open(f.Path) },
	}, nil
}

func (r *Recipe) declaration(name string, byTitle map[string]digest.Digest, counter uint64) (bundle.Declaration, error) {
	path := name
	if !filepath.IsAbs(path) {
		path = filepath.Join(r.dir, name)
	}
	text, err := readBounded(path, declaration.MaxSize)
	if err != nil {
		return bundle.Declaration{}, fmt.Errorf("cannot read declaration: %w", err)
	}
	if text, err = fill(text, byTitle, counter); err != nil {
		return bundle.Declaration{}, fault.Refusedf("cannot use declaration %q: %w", name, err)
	}
	d, err := declaration.Parse(text)
	if err != nil {
		return bundle.Declaration{}, fmt.Errorf("cannot use declaration %q: %w", name, err)
	}
	for i, res := range d.Resources {
		if res.File != nil && res.File.Secret {
			return bundle.Declaration{}, fault.Refusedf("cannot use declaration %q: resources[%d] (%q) has secret content", name, i, res.ID).
				Hint("a bundle is for everybody to read; give the secret to the machine another way")
		}
	}
	return bundle.Declaration{Title: filepath.Base(name), Bytes: text, Needs: d.Sources()}, nil
}

// fill puts digests and counter in the place of their names.
func fill(text []byte, byTitle map[string]digest.Digest, counter uint64) ([]byte, error) {
	var unknown string
	text = sourcePattern.ReplaceAllFunc(text, func(m []byte) []byte {
		part := sourcePattern.FindSubmatch(m)
		d, ok := byTitle[string(part[2])]
		if !ok {
			unknown = string(part[2])
			return m
		}
		return append(append([]byte{}, part[1]...), strconv.Quote(d.String())...)
	})
	if unknown != "" {
		return nil, fmt.Errorf("it names the file %q, the recipe does not", unknown)
	}
	return generationPattern.ReplaceAll(text, []byte("${1}"+strconv.FormatUint(counter, 10))), nil
}

// closed holds that declarations and payload name each other.
func closed(s bundle.Spec) error {
	have, needed := map[digest.Digest]bool{}, map[digest.Digest]bool{}
	for _, b := range s.Payload {
		have[b.Digest] = true
	}
	for _, d := range s.Declarations {
		for _, n := range d.Needs {
			if needed[n] = true; !have[n] {
				return fault.Refusedf("cannot close the bundle: declaration %q needs %s, which is no file of the recipe", d.Title, n)
			}
		}
	}
	for _, b := range s.Payload {
		if !needed[b.Digest] {
			return fault.Refusedf("cannot close the bundle: no declaration needs the file %q (%s)", b.Title, b.Digest)
		}
	}
	return nil
}
