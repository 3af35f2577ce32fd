package bundle

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/nox-mesh/nox-mesh/bundle/content"
	"github.com/nox-mesh/nox-mesh/bundle/internal/canonical"
	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

var ctx = context.Background()

func must[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	return must[*ecdsa.PrivateKey](t)(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
}

func trusting(t testing.TB, keys ...crypto.PublicKey) *trust.Policy {
	t.Helper()
	return must[*trust.Policy](t)(trust.FromKeys(keys...))
}

func blobOf(title string, b []byte) Blob {
	return Blob{
		Digest: digest.FromBytes(b), Size: int64(len(b)), Title: title,
		Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b)), nil },
	}
}

// specOf is a bundle with a bit of everything: two declarations, an empty file,
// one content under two titles, a larger file of size bytes.
func specOf(size int, signers ...crypto.Signer) Spec {
	large := blobOf("large", bytes.Repeat([]byte("nox\n"), size/4))
	nothing, twice := blobOf("empty", nil), blobOf("once", []byte("twice"))
	again := twice
	again.Title = "again"
	return Spec{
		Name: "site", Version: "1.2.3", Architecture: "x86_64", Counter: 7, MinimumHost: "1.0.0",
		Created: time.Date(2026, 3, 4, 5, 6, 7, 8, time.UTC),
		Declarations: []Declaration{
			{Title: "a.json", Bytes: []byte(`{"a":1}`), Needs: []digest.Digest{large.Digest, nothing.Digest}},
			{Title: "b.json", Bytes: []byte(`{"b":1}`), Needs: []digest.Digest{twice.Digest}},
		},
		Payload: []Blob{nothing, twice, again, large},
		Signers: signers,
	}
}

// bytesOf builds a spec and returns the file.
func bytesOf(t testing.TB, spec Spec) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "b.tar")
	must[*Info](t)(Build(ctx, path, spec))
	return must[[]byte](t)(os.ReadFile(path))
}

// A member of a tar, header and content, taken apart by nothing of ours but
// the fixed sizes of USTAR.
type member struct {
	head block
	body []byte
}

func (m member) name() string { return string(bytes.TrimRight(m.head[:100], "\x00")) }

func split(t testing.TB, b []byte) []member {
	t.Helper()
	var out []member
	for b[0] != 0 {
		var m member
		copy(m.head[:], b)
		var size int64
		must[int](t)(fmt.Sscanf(string(m.head[124:135]), "%o", &size))
		m.body = b[512 : 512+size]
		out = append(out, m)
		b = b[512+(size+511)/512*512:]
	}
	return out
}

func join(ms ...member) []byte {
	var out bytes.Buffer
	for _, m := range ms {
		out.Write(m.head[:])
		out.Write(m.body)
		out.Write(make([]byte, -len(m.body)&511))
	}
	out.Write(make([]byte, 1024))
	return out.Bytes()
}

func made(name string, b []byte) member { return member{header(name, int64(len(b))), b} }

func madeBlob(b []byte) member { return made(blobPrefix+digest.FromBytes(b).Encoded(), b) }

// A forgery is a bundle put together by hand, signed or not.
type forgery struct {
	index      v1.Index // D
	signers    []crypto.Signer
	signatures []signature // manifests and bundles, instead of signers
	roots      [][]byte
	entries    func([]v1.Descriptor) []v1.Descriptor // changes index.json
	rest       []member
}

// forge returns the members of a forgery.
func (f forgery) members(t testing.TB) []member {
	t.Helper()
	d := must[[]byte](t)(canonical.Marshal(f.index))
	entry := descriptor(v1.MediaTypeImageIndex, TypeBundle, d)
	subject := descriptor(v1.MediaTypeImageIndex, "", d)
	entry.Annotations = map[string]string{v1.AnnotationRefName: "bundle"}
	entries := []v1.Descriptor{entry}
	head := []member{madeBlob(d), madeBlob([]byte("{}"))}
	if len(f.roots) > 0 {
		var layers []v1.Descriptor
		var ms []member
		for _, r := range f.roots {
			layers = append(layers, descriptor(MediaTypeRoot, "", r))
			ms = append(ms, madeBlob(r))
		}
		m := must[[]byte](t)(ours(TypeRoot, &subject, nil, layers...))
		entries = append(entries, descriptor(v1.MediaTypeImageManifest, TypeRoot, m))
		head = append(append(head, madeBlob(m)), ms...)
	}
	sigs := f.signatures
	if sigs == nil {
		sigs = must[[]signature](t)(sign(subject, f.signers))
	}
	sigs = slices.SortedFunc(slices.Values(sigs), func(a, b signature) int {
		return strings.Compare(digest.FromBytes(a.manifest).Encoded(), digest.FromBytes(b.manifest).Encoded())
	})
	for _, s := range sigs {
		entries = append(entries, descriptor(v1.MediaTypeImageManifest, trust.MediaType, s.manifest))
		head = append(head, madeBlob(s.manifest), madeBlob(s.bundle))
	}
	entries = append(entries, imageNames(&f.index)...)
	if f.entries != nil {
		entries = f.entries(entries)
	}
	index := must[[]byte](t)(canonical.Marshal(v1.Index{Versioned: versioned, MediaType: v1.MediaTypeImageIndex, Manifests: entries}))
	ms := []member{made(layoutName, []byte(layoutBytes)), made(indexName, index)}
	return append(append(ms, head...), f.rest...)
}

// forgeryOf takes a spec apart into D and all that follows the head.
func forgeryOf(t testing.TB, spec Spec) forgery {
	t.Helper()
	ms := split(t, bytesOf(t, spec))
	var f forgery
	f.signers = spec.Signers
	f.roots = spec.Roots
	if err := canonical.Unmarshal(ms[2].body, &f.index); err != nil {
		t.Fatal(err)
	}
	head := 4 + 2*len(spec.Signers)
	if len(spec.Roots) > 0 {
		head += 1 + len(spec.Roots)
	}
	f.rest = ms[head:]
	return f
}

func openStore(t testing.TB) *content.Store {
	t.Helper()
	return must[*content.Store](t)(content.Open(filepath.Join(t.TempDir(), "content")))
}

// listing of a store, with inode, size and times, of which nobody can set the
// last (ctime): equal ones mean no write.
func listing(t testing.TB, s *content.Store) string {
	t.Helper()
	var out strings.Builder
	err := filepath.WalkDir(s.Dir(), func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fi, err := e.Info()
		if err == nil {
			st := fi.Sys().(*syscall.Stat_t)
			fmt.Fprintln(&out, strings.TrimPrefix(p, s.Dir()), st.Ino, fi.Size(), fi.ModTime().UnixNano(), st.Ctim.Nano())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// sound checks what must be true of a store after any error: every blob is what
// its name says, nothing is in staging, and d is not marked.
func sound(t testing.TB, s *content.Store, d digest.Digest) {
	t.Helper()
	for _, e := range must[[]os.DirEntry](t)(os.ReadDir(filepath.Join(s.Dir(), "blobs/sha256"))) {
		b := must[[]byte](t)(os.ReadFile(filepath.Join(s.Dir(), "blobs/sha256", e.Name())))
		if digest.FromBytes(b).Encoded() != e.Name() {
			t.Errorf("blob %s holds something else", e.Name())
		}
	}
	if es := must[[]os.DirEntry](t)(os.ReadDir(filepath.Join(s.Dir(), "staging"))); len(es) > 0 {
		t.Errorf("%d files in staging", len(es))
	}
	if _, ok, err := s.Marked(d); ok || err != nil {
		t.Errorf("marked complete (%v)", err)
	}
}

// titleOf is the first title of the blob that a member holds, or "".
func titleOf(info *Info, member string) string {
	for _, m := range info.Members {
		if blobPrefix+m.Digest.Encoded() == member {
			return m.Title
		}
	}
	return ""
}

// remedied checks what a person is told to do next.
func remedied(t testing.TB, err error, text string) {
	t.Helper()
	if got := fault.RemedyOf(err); !strings.Contains(got, text) {
		t.Errorf("%v: the remedy is %q, want %q", err, got, text)
	}
}

func refused(t testing.TB, err error, text string) {
	t.Helper()
	if err == nil || fault.KindOf(err) != fault.Refused || !strings.Contains(err.Error(), text) {
		t.Errorf("got %v (kind %d), want a refusal with %q", err, fault.KindOf(err), text)
	}
}
