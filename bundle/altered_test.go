package bundle

import (
	"bytes"
	"crypto"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/nox-mesh/nox-mesh/bundle/internal/canonical"
)

// TestT03BytesTakenOutOrPutInAreRefused deletes and inserts k bytes: at each place
// where something begins or ends, and at random ones.
func TestT03BytesTakenOutOrPutInAreRefused(t *testing.T) {
	t.Parallel()
	k := newKey(t)
	policy := trusting(t, k.Public())
	b := bytesOf(t, specOf(3000, k))
	random := rand.New(rand.NewPCG(3, 14))
	places := []int{0, 1, len(b) - 1024, len(b) - 512, len(b) - 1, len(b)}
	for _, m := range split(t, b) {
		begin := bytes.Index(b, m.head[:])
		places = append(places, begin, begin+blockSize, begin+blockSize+len(m.body))
	}
	for range 60 {
		places = append(places, random.IntN(len(b)))
	}
	refuses := func(bad []byte, what string, at, n int) {
		t.Helper()
		if bytes.Equal(bad, b) {
			return // zeros among zeros
		}
		_, err := Read(ctx, bytes.NewReader(bad), Options{Policy: policy})
		refused(t, err, "")
		remedied(t, err, "file") // copy or download it again, fetch the publisher's
		if t.Failed() {
			t.Fatalf("%d bytes %s at %d", n, what, at)
		}
	}
	for _, at := range places {
		for _, n := range []int{1, 2, 511, 512, 513, 1024, 4096} {
			if at+n <= len(b) {
				refuses(slices.Concat(b[:at], b[at+n:]), "taken out", at, n)
			}
			noise := make([]byte, n)
			for i := range noise {
				noise[i] = byte(random.Uint32())
			}
			refuses(slices.Concat(b[:at], noise, b[at:]), "put in", at, n)
			refuses(slices.Concat(b[:at], make([]byte, n), b[at:]), "zeros put in", at, n)
			if at >= n {
				refuses(slices.Concat(b[:at], b[at-n:]), "said twice", at, n)
			}
		}
	}
}

// TestT14ASignatureThatIsTakenOut is refused, however tidily it is done.
func TestT14ASignatureThatIsTakenOut(t *testing.T) {
	k := newKey(t)
	policy := trusting(t, k.Public())
	f := forgeryOf(t, specOf(100, k))
	whole := f.members(t)
	unmentioned := f
	unmentioned.entries = func(es []v1.Descriptor) []v1.Descriptor { return es[:1] }
	untouched(t, join(unmentioned.members(t)...), policy, "no signature")
	f.signatures = []signature{}
	untouched(t, join(f.members(t)...), policy, "no signature")
	_, err := Read(ctx, bytes.NewReader(join(f.members(t)...)), Options{Policy: policy})
	remedied(t, err, "never signed, or its signature was taken out")
	gone := slices.Delete(slices.Clone(whole), 5, 6) // the signature, not its manifest
	untouched(t, join(gone...), policy, "unexpected member")
}

// TestT20RepackedWithNewDigests: who changes a file and makes every digest right
// again, up to index.json, has no signature for it.
func TestT20RepackedWithNewDigests(t *testing.T) {
	k, thief := newKey(t), newKey(t)
	policy := trusting(t, k.Public())
	f := forgeryOf(t, specOf(100, k))
	sig := f.members(t)[5].body // made for the honest D
	evil := []byte("evil")
	for i, m := range f.rest {
		var payload v1.Manifest
		if json.Unmarshal(m.body, &payload) != nil || payload.ArtifactType != TypePayload {
			continue
		}
		last := len(payload.Layers) - 1
		old := payload.Layers[last].Digest
		payload.Layers[last].Digest, payload.Layers[last].Size = digest.FromBytes(evil), int64(len(evil))
		f.rest[i] = madeBlob(must[[]byte](t)(canonical.Marshal(payload)))
		for j := range f.index.Manifests {
			if f.index.Manifests[j].ArtifactType == TypePayload {
				f.index.Manifests[j] = descriptor(v1.MediaTypeImageManifest, TypePayload, f.rest[i].body)
			}
		}
		for j := range f.rest {
			if f.rest[j].name() == blobPrefix+old.Encoded() {
				f.rest[j] = madeBlob(evil)
			}
		}
	}
	d := must[[]byte](t)(canonical.Marshal(f.index))
	subject := descriptor(v1.MediaTypeImageIndex, "", d)
	manifest := must[[]byte](t)(ours("application/vnd.dev.sigstore.bundle.v0.3+json", &subject, nil,
		descriptor("application/vnd.dev.sigstore.bundle.v0.3+json", "", sig)))
	f.signatures = []signature{{manifest, sig}}
	untouched(t, join(f.members(t)...), policy, "bad signature")
	// It is whole in all else: its own maker reads it.
	f.signatures, f.signers = nil, []crypto.Signer{thief}
	must[*Info](t)(Read(ctx, bytes.NewReader(join(f.members(t)...)), Options{Policy: trusting(t, thief.Public())}))
	untouched(t, join(f.members(t)...), policy, "unknown key")
}

// TestT47AsManySignaturesAsAreRead: sixteen, of which one is known.
func TestT47AsManySignaturesAsAreRead(t *testing.T) {
	signers := make([]crypto.Signer, maxSignatures)
	for i := range signers {
		signers[i] = newKey(t)
	}
	b := bytesOf(t, specOf(100, signers...))
	for _, i := range []int{0, 7, 15} {
		info, err := Read(ctx, bytes.NewReader(b), Options{Policy: trusting(t, signers[i].Public())})
		if err != nil || len(info.Signers) != 1 {
			t.Errorf("signer %d: %+v %v", i, info, err)
		}
	}
	info := must[*Info](t)(Read(ctx, bytes.NewReader(b), Options{Policy: trusting(t, signers[3].Public(), signers[9].Public())}))
	if len(info.Signers) != 2 {
		t.Errorf("%+v", info.Signers)
	}
	untouched(t, b, trusting(t, newKey(t).Public()), "unknown key")
	_, err := Build(ctx, t.TempDir()+"/b", specOf(100, append(signers, newKey(t))...))
	refused(t, err, "at most 16")
}
