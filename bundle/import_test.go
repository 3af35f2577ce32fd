package bundle

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// layoutOf unpacks bundles into one folder, and writes an index.json as other
// programs do: no artifact types, what refers to a bundle before it, and names as it
// pleases them.
func layoutOf(t testing.TB, bundles map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "blobs/sha256"), 0o700); err != nil {
		t.Fatal(err)
	}
	var entries []v1.Descriptor
	for name, b := range bundles {
		for _, m := range split(t, b) {
			if err := os.WriteFile(filepath.Join(dir, m.name()), m.body, 0o600); err != nil {
				t.Fatal(err)
			}
			if m.name() != indexName {
				continue
			}
			x := must[v1.Index](t)(decoded(m.body))
			for i, e := range slices.Backward(x.Manifests) {
				e.ArtifactType, e.Annotations = "", nil
				if i == 0 {
					e.Annotations = map[string]string{v1.AnnotationRefName: name}
				}
				if !slices.ContainsFunc(entries, func(o v1.Descriptor) bool { return o.Digest == e.Digest && i > 0 }) {
					entries = append(entries, e)
				}
			}
		}
	}
	writeEntries(t, dir, entries...)
	return dir
}

func writeEntries(t testing.TB, dir string, entries ...v1.Descriptor) {
	t.Helper()
	b := must[[]byte](t)(json.MarshalIndent(v1.Index{Versioned: versioned, Manifests: entries}, "", "  "))
	if err := os.WriteFile(filepath.Join(dir, indexName), b, 0o600); err != nil {
		t.Fatal(err)
	}
}

func entriesOf(t testing.TB, dir string) []v1.Descriptor {
	t.Helper()
	return must[v1.Index](t)(decoded(must[[]byte](t)(os.ReadFile(filepath.Join(dir, indexName))))).Manifests
}

// addBlob puts a manifest into a layout, and into its index.json.
func addBlob(t testing.TB, dir string, b []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, blobPrefix+digest.FromBytes(b).Encoded()), b, 0o600); err != nil {
		t.Fatal(err)
	}
	writeEntries(t, dir, append(entriesOf(t, dir), descriptor(v1.MediaTypeImageManifest, "", b))...)
}

// What was unpacked, and lost the order of everything, is the same file again; so is
// what was read into a content store.
func TestImportedIsAsBuilt(t *testing.T) {
	old, young := newKey(t), newKey(t)
	h := newHouse(t)
	h.next([]*ecdsa.PrivateKey{old})
	h.next([]*ecdsa.PrivateKey{old, young})
	images := specWithImages(t)
	images.Signers, images.Roots = []crypto.Signer{old, young}, h.files
	content := bytes.Repeat([]byte("content\n"), 5000)
	packed := compressedSpec(young, squeeze(t, content), content)
	plain := specOf(3000, old)
	policy := must[*trust.Policy](t)(trust.Merge(h.policy(1), trusting(t, young.Public())))
	for name, spec := range map[string]Spec{"images, roots and two signatures": images, "a compressed file": packed, "neither roots nor images": plain} {
		t.Run(name, func(t *testing.T) {
			want := bytesOf(t, spec)
			store := openStore(t)
			info := must[*Info](t)(Read(ctx, bytes.NewReader(want), Options{Policy: policy, Store: store}))
			dir := layoutOf(t, map[string][]byte{"it": want})
			for what, from := range map[string][2]string{
				"the only one":               {dir, ""},
				"by its name":                {dir, "it"},
				"by its digest":              {dir, info.Digest.String()},
				"a content store":            {store.Dir(), ""},
				"a content store, by a name": {store.Dir(), info.refName()},
			} {
				out := filepath.Join(t.TempDir(), "again")
				var did []string
				done, err := Import(ctx, from[0], from[1], out, Importing{Policy: policy, Progress: func(doing string, _ Progress) {
					if !slices.Contains(did, doing) {
						did = append(did, doing)
					}
				}})
				if err != nil {
					t.Errorf("%s: %v", what, err)
					continue
				}
				if !bytes.Equal(must[[]byte](t)(os.ReadFile(out)), want) {
					t.Errorf("%s: another file", what)
				}
				if done.Digest != info.Digest || done.LeftOut != 0 || !slices.Equal(did, []string{"writing", "reading back"}) {
					t.Errorf("%s: %+v, %q", what, done, did)
				}
			}
		})
	}
}

// A registry keeps what was pushed before, and takes what others push.
func TestImportTakesWhatBelongsToTheBundle(t *testing.T) {
	old, young := newKey(t), newKey(t)
	h := newHouse(t)
	h.next([]*ecdsa.PrivateKey{old})
	h.next([]*ecdsa.PrivateKey{old, young})
	spec := specOf(3000, old)
	spec.Roots = h.files[:1]
	first := bytesOf(t, spec)
	resigned := put(t, first)
	must[*Resigned](t)(Resign(ctx, resigned, resigned, Resigning{Policy: h.policy(2), Signers: []crypto.Signer{young}, Add: true, Roots: h.files}))
	second := must[[]byte](t)(os.ReadFile(resigned))
	other := specOf(100, old)
	other.Name, other.Roots = "other", h.files
	dir := layoutOf(t, map[string][]byte{"first": first, "second": second, "other": bytesOf(t, other)})
	// Both chains, both signatures, and another bundle with its own: as signed last.
	out := filepath.Join(t.TempDir(), "again")
	done := must[*Imported](t)(Import(ctx, dir, "first", out, Importing{Policy: h.policy(1)}))
	if !bytes.Equal(must[[]byte](t)(os.ReadFile(out)), second) || done.LeftOut != 0 {
		t.Errorf("another file, or %d left out", done.LeftOut)
	}
	if _, err := Import(ctx, dir, "", out, Importing{Policy: h.policy(1)}); err == nil || !strings.Contains(err.Error(), "several bundles") {
		t.Errorf("%v", err)
	}

	// What others put to it is no part of it: an SBOM, a signature as cosign makes
	// one in a registry.
	subject := descriptor(v1.MediaTypeImageIndex, "", split(t, first)[2].body)
	addBlob(t, dir, must[[]byte](t)(ours("application/spdx+json", &subject, nil, empty)))
	addBlob(t, dir, []byte(`{"schemaVersion":2,"mediaType":"`+v1.MediaTypeImageManifest+`","artifactType":"`+trust.MediaType+
		`","config":{},"layers":[],"subject":{"mediaType":"`+subject.MediaType+`","digest":"`+subject.Digest.String()+`","size":1}}`))
	done = must[*Imported](t)(Import(ctx, dir, "first", out, Importing{Policy: h.policy(1)}))
	if !bytes.Equal(must[[]byte](t)(os.ReadFile(out)), second) || done.LeftOut != 2 {
		t.Errorf("another file, or %d left out", done.LeftOut)
	}
}

func TestWhatIsNotImported(t *testing.T) {
	k, stranger := newKey(t), newKey(t)
	h := newHouse(t)
	h.next([]*ecdsa.PrivateKey{k})
	spec := specWithImages(t)
	spec.Signers, spec.Roots = []crypto.Signer{k}, h.files
	good := bytesOf(t, spec)
	ms := split(t, good)
	signature, large, manifest := ms[7].name(), ms[len(ms)-1].name(), blobPrefix+spec.Images[0].digest().Encoded()
	foreign := newHouse(t)
	foreign.next([]*ecdsa.PrivateKey{stranger})
	theirs := specWithImages(t)
	theirs.Signers, theirs.Roots = []crypto.Signer{stranger}, foreign.files
	for _, c := range []struct {
		name   string
		change func(dir string) error
		ref    string
		policy *trust.Policy
		text   string
	}{
		{"a stranger's", nil, "", foreign.policy(1), "unknown key"},
		{"trusting nobody", nil, "", nil, "no key is trusted"},
		{"under another name", nil, "bundle", h.policy(1), `no bundle "bundle"`},
		{"of another digest", nil, digest.FromString("x").String(), h.policy(1), "no bundle"},
		{"an image of it", nil, spec.Images[0].digest().String(), h.policy(1), "no bundle"},
		{"without its signature", func(dir string) error { return os.Remove(filepath.Join(dir, signature)) }, "", h.policy(1), "is not there"},
		{"without a layer", func(dir string) error { return os.Remove(filepath.Join(dir, large)) }, "", h.policy(1), "is not there"},
		{"with a shorter layer", func(dir string) error { return os.Truncate(filepath.Join(dir, large), 1) }, "", h.policy(1), "has 1 bytes"},
		{"with another layer", func(dir string) error {
			return os.WriteFile(filepath.Join(dir, large), bytes.Repeat([]byte("x"), len(ms[len(ms)-1].body)), 0o600)
		}, "", h.policy(1), "digest mismatch"},
		{"with another manifest", func(dir string) error {
			return os.WriteFile(filepath.Join(dir, manifest), bytes.Repeat([]byte(" "), len(spec.Images[0].Manifest)), 0o600)
		}, "", h.policy(1), "digest mismatch"},
		{"with a link that leads out of it", func(dir string) error {
			name := filepath.Join(dir, large)
			outside := filepath.Join(filepath.Dir(dir), "outside")
			return errors.Join(os.Rename(name, outside), os.Symlink(outside, name))
		}, "", h.policy(1), "escapes"},
		{"unsigned", func(dir string) error { writeEntries(t, dir, entriesOf(t, dir)[len(entriesOf(t, dir))-1]); return nil }, "", h.policy(1), "no signature"},
		{"no layout", func(dir string) error { return os.Remove(filepath.Join(dir, layoutName)) }, "", h.policy(1), "no OCI image layout"},
		{"another layout", func(dir string) error {
			return os.WriteFile(filepath.Join(dir, layoutName), []byte(`{"imageLayoutVersion":"2.0.0"}`), 0o600)
		}, "", h.policy(1), "no OCI image layout of version"},
		{"no index", func(dir string) error { return os.WriteFile(filepath.Join(dir, indexName), []byte("x"), 0o600) }, "", h.policy(1), "index.json"},
		{"an empty one", func(dir string) error { writeEntries(t, dir); return nil }, "", h.policy(1), "holds no bundle"},
		{"with the roots of two chains", func(dir string) error {
			subject := descriptor(v1.MediaTypeImageIndex, "", ms[2].body)
			root := foreign.files[0]
			addBlob(t, dir, must[[]byte](t)(ours(TypeRoot, &subject, nil, descriptor(MediaTypeRoot, "", root))))
			return os.WriteFile(filepath.Join(dir, blobPrefix+digest.FromBytes(root).Encoded()), root, 0o600)
		}, "", h.policy(1), "two chains"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := layoutOf(t, map[string][]byte{"it": good})
			if c.change != nil {
				if err := c.change(dir); err != nil {
					t.Fatal(err)
				}
			}
			out := filepath.Join(t.TempDir(), "out")
			_, err := Import(ctx, dir, c.ref, out, Importing{Policy: c.policy})
			if err == nil || !strings.Contains(err.Error(), c.text) {
				t.Errorf("%v, want %q", err, c.text)
			}
			if c.name != "with a link that leads out of it" && fault.KindOf(err) != fault.Refused {
				t.Errorf("kind %d: %v", fault.KindOf(err), err)
			}
			if es := must[[]os.DirEntry](t)(os.ReadDir(filepath.Dir(out))); len(es) != 0 {
				t.Errorf("%d files are left", len(es))
			}
		})
	}
	dir := layoutOf(t, map[string][]byte{"it": good})
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := Import(cancelled, dir, "", filepath.Join(t.TempDir(), "out"), Importing{Policy: h.policy(1)}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := Import(ctx, filepath.Join(dir, "none"), "", filepath.Join(t.TempDir(), "out"), Importing{}); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}
