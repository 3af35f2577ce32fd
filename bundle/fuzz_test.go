package bundle

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"io"
	"slices"
	"testing"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

func FuzzRead(f *testing.F) {
	// The same key in each of the fuzzer's processes.
	k := must[*ecdsa.PrivateKey](f)(ecdsa.ParseRawPrivateKey(elliptic.P256(), bytes.Repeat([]byte{7}, 32)))
	policy := trusting(f, k.Public())
	good := bytesOf(f, specOf(600, k))
	ms := split(f, good)
	f.Add(good)
	f.Add(good[:len(good)-512])
	f.Add(append(bytes.Clone(good), 0))
	f.Add(join(ms[:4]...))
	f.Add(join(append(slices.Clone(ms), ms[3])...))
	f.Fuzz(func(t *testing.T, b []byte) {
		file, err := Read(ctx, bytes.NewReader(b), Options{Policy: policy})
		if err != nil && fault.KindOf(err) != fault.Refused {
			t.Fatalf("kind %d: %v", fault.KindOf(err), err)
		}
		if err == nil && !bytes.Equal(b, good) {
			t.Fatal("other bytes are accepted")
		}
		admitted := false
		pipe, perr := Read(ctx, io.MultiReader(bytes.NewReader(b)), Options{Policy: policy, Admit: func(*Info) error {
			admitted = true
			return nil
		}})
		if (err == nil) != (perr == nil) || err == nil && file.Digest != pipe.Digest {
			t.Fatalf("file: %v; pipe: %v", err, perr)
		}
		if !admitted {
			return // nothing is written before that, and a store costs some fsyncs
		}
		store := openStore(t)
		if _, err := Read(ctx, bytes.NewReader(b), Options{Policy: policy, Store: store}); err != nil {
			sound(t, store, digest.FromBytes(ms[2].body))
		}
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
			_, err = newTree(x)
			errs = append(errs, err)
		}
		_, err = parseRoots(b)
		errs = append(errs, err)
		_, err = parseSignature(b, empty)
		errs = append(errs, err)
		for _, kind := range []string{TypeDeclaration, TypePayload, ""} {
			for _, media := range []string{v1.MediaTypeImageManifest, v1.MediaTypeImageIndex} {
				tree := must[*tree](t)(newTree(&v1.Index{}))
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
