package bundle

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/nox-mesh/nox-mesh/bundle/content"
	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// A lot is the bundles that the fuzzers begin with, and what they are read under.
type lot struct {
	policy  *trust.Policy
	keys    []crypto.Signer // the first is trusted
	bundles [][]byte
}

// newLot makes the same bundles in each of the fuzzer's processes: with one
// signature and with three, with a chain of roots, with a compressed file, with a
// container image, and with next to nothing in it.
func newLot(t testing.TB) *lot {
	raw := func(b byte) *ecdsa.PrivateKey {
		return must[*ecdsa.PrivateKey](t)(ecdsa.ParseRawPrivateKey(elliptic.P256(), bytes.Repeat([]byte{b}, 32)))
	}
	k, other, third := raw(7), raw(8), raw(9)
	h := &house{t: t, root: raw(10)}
	h.next([]*ecdsa.PrivateKey{k})
	h.next([]*ecdsa.PrivateKey{k, other})
	h.next([]*ecdsa.PrivateKey{k, other}, third)
	l := &lot{keys: []crypto.Signer{k, other, third}, policy: must[*trust.Policy](t)(trust.Merge(h.policy(1), trusting(t, k.Public())))}
	rooted := specOf(600, other)
	rooted.Roots = h.files
	tiny := Spec{Name: "x", Version: "1", Architecture: "x86_64", Signers: []crypto.Signer{k},
		Declarations: []Declaration{{Title: "d", Bytes: []byte("{}")}}}
	content := bytes.Repeat([]byte("content\n"), 50)
	for _, s := range []Spec{specOf(600, k), specOf(100, other, k, third), rooted, tiny, compressedSpec(k, squeeze(t, content), content)} {
		l.bundles = append(l.bundles, bytesOf(t, s))
	}
	config, layer := []byte("config"), []byte("layer")
	image := []byte(`{"schemaVersion":2,"config":{"digest":"` + digest.FromBytes(config).String() + `","mediaType":"` + v1.MediaTypeImageConfig +
		`","size":6},"layers":[{"digest":"` + digest.FromBytes(layer).String() + `","mediaType":"` + v1.MediaTypeImageLayerGzip + `","size":5}]}`)
	l.bundles = append(l.bundles, signed(t, k, []v1.Descriptor{titledImage(v1.MediaTypeImageManifest, image)}, image, config, layer))
	return l
}

// legal reads b in every way there is, and holds what must be true of any bytes: the
// same answer each time, which is the content or a refusal that says what to do; no
// panic; little memory; and nothing on the disk but in the store, where every blob
// is what its name says.
func (l *lot) legal(t *testing.T, b []byte) error {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	info, err := Read(ctx, bytes.NewReader(b), Options{Policy: l.policy})
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 16<<20+64*uint64(len(b)) {
		t.Fatalf("%d bytes were allocated for %d", n, len(b))
	}
	if err != nil && (fault.KindOf(err) != fault.Refused || fault.RemedyOf(err) == "" || info != nil) {
		t.Fatalf("kind %d, remedy %q: %v", fault.KindOf(err), fault.RemedyOf(err), err)
	}
	if err == nil {
		l.whole(t, b, info)
	}
	admitted := false
	admit := func(*Info) error { admitted = true; return nil }
	for way, r := range map[string]io.Reader{
		"a pipe": io.MultiReader(bytes.NewReader(b)), "one byte at a time": iotest.OneByteReader(bytes.NewReader(b)),
	} {
		again, perr := Read(ctx, r, Options{Policy: l.policy, Admit: admit})
		if fmt.Sprint(err) != fmt.Sprint(perr) || err == nil && again.Digest != info.Digest {
			t.Fatalf("a file: %v; %s: %v", err, way, perr)
		}
	}
	inspected, ierr := Inspect(ctx, bytes.NewReader(b), l.policy)
	if err == nil && (ierr != nil || inspected.Digest != info.Digest) || ierr != nil && ierr.Error() != err.Error() {
		t.Fatalf("read: %v; inspected: %v", err, ierr)
	}
	if !admitted {
		return err // nothing is written before that, and a store costs some fsyncs
	}
	outside := t.TempDir()
	store := must[*content.Store](t)(content.Open(filepath.Join(outside, "content")))
	_, serr := Read(ctx, bytes.NewReader(b), Options{Policy: l.policy, Store: store})
	if (err == nil) != (serr == nil) || serr != nil && fault.KindOf(serr) != fault.Refused && !strings.Contains(serr.Error(), "no space") {
		t.Fatalf("verified: %v; stored: %v", err, serr)
	}
	if es := must[[]os.DirEntry](t)(os.ReadDir(outside)); len(es) != 1 {
		t.Fatalf("%d files beside the store", len(es))
	}
	if serr != nil {
		sound(t, store, "sha256:"+digest.Digest(strings.Repeat("0", 64)))
		if marks := must[[]v1.Descriptor](t)(store.Marks()); len(marks) > 0 {
			t.Fatalf("marked: %v", marks)
		}
		return err
	}
	if _, err := Stored(ctx, store, info.Digest, l.policy); err != nil {
		t.Fatalf("it was stored, and is not there: %v", err)
	}
	return nil
}

// whole holds that a bundle that was accepted is what it says: each blob under its
// digest, each once, nothing but what it says it holds, and written in the one way.
func (l *lot) whole(t *testing.T, b []byte, info *Info) {
	t.Helper()
	ms := split(t, b)
	if !bytes.Equal(join(ms...), b) {
		t.Fatal("it is not written in the one way")
	}
	seen := map[string]bool{}
	for _, m := range ms[2:] {
		d := digest.FromBytes(m.body)
		if m.name() != blobPrefix+d.Encoded() || seen[d.String()] {
			t.Fatalf("member %q holds %s, or is there twice", m.name(), d)
		}
		seen[d.String()] = true
	}
	for _, m := range info.Members {
		if !seen[m.Digest.String()] {
			t.Fatalf("it does not hold %s", m.Digest)
		}
	}
	if !seen[info.Digest.String()] || len(info.Signers) == 0 || len(info.Declarations) == 0 {
		t.Fatalf("%+v", info)
	}
}

// FuzzRead changes bytes: what is accepted is a bundle that was signed, to the byte.
func FuzzRead(f *testing.F) {
	l := newLot(f)
	for _, b := range l.bundles {
		f.Add(b)
		ms := split(f, b)
		f.Add(b[:len(b)-512])
		f.Add(append(bytes.Clone(b), 0))
		f.Add(join(ms[:4]...))
		f.Add(join(append(slices.Clone(ms), ms[3])...))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if l.legal(t, b) == nil && !slices.ContainsFunc(l.bundles, func(good []byte) bool { return bytes.Equal(good, b) }) {
			t.Fatal("other bytes are accepted")
		}
	})
}

// FuzzMembers changes members, and may make digests and signatures right again: it
// comes to where FuzzRead cannot.
func FuzzMembers(f *testing.F) {
	l := newLot(f)
	for which := range l.bundles {
		f.Add(byte(which), []byte{})
		for what := range byte(12) {
			for i := byte(0); i < 10; i += 3 {
				f.Add(byte(which), []byte{what, i + what%3, 0, 40, 3})
			}
		}
	}
	f.Fuzz(func(t *testing.T, which byte, script []byte) {
		m := &mutant{t: t, members: split(t, l.bundles[int(which)%len(l.bundles)]), signers: l.keys}
		m.run(script)
		l.legal(t, join(m.members...))
	})
}

// What a signer signed is parsed as well; no bytes make it panic.
func FuzzDocuments(f *testing.F) {
	k := newKey(f)
	for _, m := range split(f, bytesOf(f, specOf(100, k))) {
		f.Add(m.body)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		_, err := parsePointers(b)
		errs := []error{err}
		x, _, err := parseBundle(b)
		errs = append(errs, err)
		if err == nil {
			_, err = newTree(x, publishers)
			errs = append(errs, err)
		}
		_, err = parseRoots(b, descriptor(v1.MediaTypeImageIndex, "", []byte("d")))
		errs = append(errs, err)
		_, err = parseSignature(b, empty)
		errs = append(errs, err)
		for _, kind := range []string{TypeDeclaration, TypePayload, ""} {
			for _, media := range []string{v1.MediaTypeImageManifest, v1.MediaTypeImageIndex} {
				tree := must[*tree](t)(newTree(&v1.Index{}, publishers))
				errs = append(errs, tree.read(descriptor(media, kind, b), b))
			}
		}
		for _, err := range errs {
			if err != nil && fault.KindOf(err) != fault.Refused {
				t.Fatal(err)
			}
		}
	})
}
