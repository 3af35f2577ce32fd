package bundle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/nox-mesh/nox-mesh/bundle/internal/canonical"
	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// Importing says how a bundle is made of an image layout.
type Importing struct {
	// Policy is what the bundle must verify under; it is required.
	Policy *trust.Policy
	// Progress, if set, is told as content is "writing" and then as it is "reading
	// back".
	Progress Told
}

// An Imported is a bundle that was made of an image layout.
type Imported struct {
	*Info
	// LeftOut counts what refers to the bundle there and has no place in it.
	LeftOut int `json:"left_out,omitempty"`
}

// Import writes to out the bundle that lies in dir, an OCI image layout as other
// programs leave it of a bundle that they carried about, or one's own content store:
// D is the entry that ref names, or is the digest of, or for "" the only bundle
// there is; signatures and release roots are what refers to it. There is but one
// file for one D with one set of signatures and roots, so what was built and went to
// a registry and back is the same bytes again.
//
// It needs no secret key: who signed is what it was. As with Build the file is at
// out only after it was read back whole.
func Import(ctx context.Context, dir, ref, out string, i Importing) (*Imported, error) {
	info, err := doImport(ctx, dir, ref, out, i)
	if err != nil {
		return nil, fmt.Errorf("cannot make a bundle of %q: %w", dir, err)
	}
	return info, nil
}

func doImport(ctx context.Context, dir, ref, out string, i Importing) (*Imported, error) {
	file, err := openDestination(out)
	if err != nil {
		return nil, err
	}
	defer file.close()
	l, err := openLayout(dir)
	if err != nil {
		return nil, err
	}
	defer l.root.Close()
	entries, err := l.entries()
	if err != nil {
		return nil, err
	}
	s := &seal{}
	if s.bundle, s.index, err = l.find(entries, ref); err != nil {
		return nil, err
	}
	done := &Imported{}
	if done.LeftOut, err = l.referrers(s, entries); err != nil {
		return nil, err
	}
	// Decided here, before gigabytes are written, and again when they are read back.
	index, _, err := decide(s.bundle.Digest, s.index, s.roots, s.signatures, i.Policy)
	if err != nil {
		return nil, err
	}
	s.others = imageNames(index)
	p := &plan{policy: i.Policy}
	if err := p.seal(s); err != nil {
		return nil, err
	}
	if err := l.body(ctx, p, index); err != nil {
		return nil, err
	}
	done.Info, err = p.save(ctx, file, i.Progress)
	return done, err
}

// referrers finds what has D as its subject, and takes release roots and signatures
// as a bundle has them. What else anybody may have put beside it in a registry is
// left out, and counted.
func (l *layout) referrers(s *seal, entries []v1.Descriptor) (leftOut int, err error) {
	subject := descriptor(s.bundle.MediaType, "", s.index)
	seen := map[digest.Digest]bool{s.bundle.Digest: true}
	for _, e := range entries {
		if seen[e.Digest] || e.MediaType != v1.MediaTypeImageManifest {
			continue
		}
		seen[e.Digest] = true
		b, err := l.blob(e, maxManifest)
		if err != nil {
			return 0, fmt.Errorf("an entry of %q: %w", indexName, err)
		}
		var m v1.Manifest
		if canonical.Foreign(b, &m) != nil || m.Subject == nil || m.Subject.Digest != subject.Digest {
			continue
		}
		if layer, err := parseSignature(b, subject); err == nil && len(b) <= maxHeadManifest {
			sig, err := l.blob(layer, trust.MaxSignature)
			if err != nil {
				return 0, err
			}
			s.signatures = append(s.signatures, signature{b, sig})
			continue
		}
		layers, err := parseRoots(b, subject)
		if err != nil || len(b) > maxHeadManifest {
			leftOut++
			continue
		}
		var roots [][]byte
		for _, layer := range layers {
			root, err := l.blob(layer, trust.MaxRoot)
			if err != nil {
				return 0, err
			}
			roots = append(roots, root)
		}
		// A bundle that was signed again may lie there with both chains: the longer
		// one has grown from the other.
		if s.roots, err = longer(s.roots, roots); err != nil {
			return 0, err
		}
	}
	return leftOut, nil
}

// longer returns the longer of two chains, which must begin alike or end alike.
func longer(a, b [][]byte) ([][]byte, error) {
	if len(a) > len(b) {
		a, b = b, a
	}
	for _, root := range a {
		if !slices.ContainsFunc(b, func(r []byte) bool { return bytes.Equal(r, root) }) {
			return nil, fault.Refusedf("release roots of two chains refer to it").
				Hint("take out of the registry those that its publisher did not put there")
		}
	}
	return b, nil
}

// body adds the manifests and blobs under D to the plan.
func (l *layout) body(ctx context.Context, p *plan, index *v1.Index) error {
	t, err := newTree(index, publishers)
	if err != nil {
		return err
	}
	err = t.walk(func(m v1.Descriptor) ([]byte, error) {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("interrupted: %w", err)
		}
		b, err := l.blob(m, maxManifest)
		if err == nil {
			p.addBlob(b)
		}
		return b, err
	})
	if err != nil {
		return err
	}
	return p.blobs(t, func(d v1.Descriptor) (func() (io.ReadCloser, error), error) {
		name := blobPrefix + d.Digest.Encoded()
		// What is missing is said now, and not after the others were written.
		f, size, err := l.file(name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, missing(d)
		}
		if err != nil {
			return nil, err
		}
		f.Close()
		if size != d.Size {
			return nil, fault.Refusedf("blob %s has %d bytes, not %d", d.Digest, size, d.Size).Hint("fetch it again")
		}
		return func() (io.ReadCloser, error) {
			f, _, err := l.file(name)
			return f, err
		}, nil
	})
}
