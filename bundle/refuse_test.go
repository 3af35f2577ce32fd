package bundle

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/nox-mesh/nox-mesh/bundle/internal/canonical"
	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// untouched reads b, from a file and from a pipe, and holds that it is refused
// with text and that nothing was written.
func untouched(t *testing.T, b []byte, policy *trust.Policy, text string) {
	t.Helper()
	s := openStore(t)
	before := listing(t, s)
	for _, r := range []io.Reader{bytes.NewReader(b), io.MultiReader(bytes.NewReader(b))} {
		_, err := Read(ctx, r, Options{Policy: policy, Store: s})
		refused(t, err, text)
	}
	if listing(t, s) != before {
		t.Error("something was written")
	}
}

func TestSignaturesOfABundle(t *testing.T) {
	good, stranger := newKey(t), newKey(t)
	policy := trusting(t, good.Public())
	f := forgeryOf(t, specOf(100, good))
	subject := descriptor(v1.MediaTypeImageIndex, "", must[[]byte](t)(canonical.Marshal(f.index)))
	made := func(k *ecdsa.PrivateKey, d v1.Descriptor) signature {
		return must[[]signature](t)(sign(d, []crypto.Signer{k}))[0]
	}
	other := subject
	other.Digest = digest.FromString("another bundle")
	// A sound signature of something else, under a manifest that says it is ours.
	wrapped := func(b []byte) signature {
		return signature{must[[]byte](t)(ours(trust.MediaType, &subject, nil, descriptor(trust.MediaType, "", b))), b}
	}
	root := trust.NewRoot(nil, []trust.Key{must[trust.Key](t)(trust.NewKey(stranger.Public(), trust.ScopeRoot))},
		must[string](t)(trust.KeyID(good.Public())))
	revoked := must[*trust.Policy](t)(trust.FromRoot(must[[]byte](t)(trust.SignRoot(root, stranger))))
	ok := made(good, subject)
	for _, c := range []struct {
		name   string
		sigs   []signature
		policy *trust.Policy
		text   string // "" is accepted
	}{
		{"one good", []signature{ok}, policy, ""},
		{"T-47 one good, one unknown", []signature{made(stranger, subject), ok}, policy, ""},
		{"T-14 T-47 none", []signature{}, policy, "no signature"},
		{"unknown", []signature{made(stranger, subject)}, policy, "unknown key"},
		{"revoked", []signature{ok}, revoked, "revoked key"},
		{"no policy", []signature{ok}, nil, "no key is trusted"},
		{"T-47 the same twice", []signature{ok, ok}, policy, "duplicate"},
		{"T-54 of another bundle", []signature{made(good, other)}, policy, "bad signature"},
		{"T-54 of another bundle, claimed to be of this", []signature{wrapped(must[[]byte](t)(trust.Sign(good, other.Digest)))}, policy, "bad signature"},
		{"T-54 no sigstore bundle", []signature{wrapped([]byte(`{"a":1}`))}, policy, "bad signature"},
		{"T-54 a root as signature", []signature{wrapped(must[[]byte](t)(trust.SignRoot(root, stranger)))}, policy, "bad signature"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := f
			f.signatures = c.sigs
			b := join(f.members(t)...)
			if c.text != "" {
				untouched(t, b, c.policy, c.text)
			} else if info, err := Read(ctx, bytes.NewReader(b), Options{Policy: c.policy}); err != nil || len(info.Signers) != 1 {
				t.Error(err)
			}
		})
	}
}

func TestABundleBringsTheRootsThatMakeItsSignerKnown(t *testing.T) {
	var files [][]byte
	var prev *trust.Root
	var before, release *ecdsa.PrivateKey
	for range 11 {
		k := newKey(t)
		release = newKey(t)
		r := trust.NewRoot(prev, []trust.Key{
			must[trust.Key](t)(trust.NewKey(k.Public(), trust.ScopeRoot)),
			must[trust.Key](t)(trust.NewKey(release.Public(), trust.ScopeRelease)),
		})
		signers := []crypto.Signer{k}
		if before != nil {
			signers = append(signers, before)
		}
		files = append(files, must[[]byte](t)(trust.SignRoot(r, signers...)))
		prev, before = &r, k
	}
	spec := specOf(100, release)
	spec.Roots = files
	// The chain is shipped as a payload file too: it is in the tar once.
	shipped := blobOf("11.root.json", files[10])
	spec.Payload = append(spec.Payload, shipped)
	spec.Declarations[0].Needs = append(spec.Declarations[0].Needs, shipped.Digest)
	b := bytesOf(t, spec)
	policy := must[*trust.Policy](t)(trust.FromRoot(files[0]))
	store := openStore(t)
	info := must[*Info](t)(Read(ctx, bytes.NewReader(b), Options{Policy: policy, Store: store}))
	if v, _ := info.Policy.Root(); v != 11 || info.Signers[0].Root != 11 {
		t.Errorf("root %d, signer %+v", v, info.Signers)
	}
	if again := must[*Info](t)(Stored(ctx, store, info.Digest, policy)); again.Signers[0].Root != 11 {
		t.Errorf("signer %+v", again.Signers)
	}
	if !store.Has(shipped.Digest, shipped.Size) {
		t.Error("the shipped root is not in the store")
	}
	f := forgeryOf(t, spec)
	f.roots = slices.Delete(slices.Clone(files), 4, 5)
	untouched(t, join(f.members(t)...), policy, "gap")
	f.roots = nil
	untouched(t, join(f.members(t)...), policy, "unknown key")
	f.roots = [][]byte{files[0], []byte("{}")}
	untouched(t, join(f.members(t)...), policy, "duplicate")
	f.roots = [][]byte{[]byte(`{"x":1}`)}
	untouched(t, join(f.members(t)...), policy, "release root")
	spec.Roots = files[:3] // the signer is no release key of root 3
	if _, err := Build(ctx, t.TempDir()+"/b", spec); fault.KindOf(err) != fault.Refused {
		t.Error(err)
	}
}

func TestAnArchiveThatIsNotCanonicalIsRefused(t *testing.T) {
	k := newKey(t)
	policy := trusting(t, k.Public())
	b := bytesOf(t, specOf(2000, k))
	ms := split(t, b)
	if !bytes.Equal(join(ms...), b) {
		t.Fatal("the test cannot write what was built")
	}
	last := len(ms) - 1
	// header with a field changed and the checksum right
	with := func(m member, off int, s string) member {
		copy(m.head[off:], s)
		copy(m.head[148:156], "        ")
		sum := 0
		for _, c := range m.head {
			sum += int(c)
		}
		copy(m.head[148:], must[string](t)(octal(sum)))
		return m
	}
	named := func(name string) member {
		return with(member{ms[3].head, ms[3].body}, 0, name+strings.Repeat("\x00", 100-len(name)))
	}
	put := func(i int, m member) []byte {
		c := slices.Clone(ms)
		c[i] = m
		return join(c...)
	}
	insert := func(i int, m ...member) []byte { return join(slices.Insert(slices.Clone(ms), i, m...)...) }
	swap := func(i, j int) []byte {
		c := slices.Clone(ms)
		c[i], c[j] = c[j], c[i]
		return join(c...)
	}
	for _, c := range []struct {
		name string
		b    []byte
		text string
	}{
		{"empty", nil, "truncated (got 0 of 512"},
		{"no end", b[:len(b)-1024], "truncated (got 0 of 512"},
		{"one end block", b[:len(b)-512], "truncated (got 0 of 512"},
		{"one end block and a member", append(bytes.Clone(b[:len(b)-512]), ms[0].head[:]...), "one end block"},
		{"T-17 a third end block", append(bytes.Clone(b), make([]byte, 512)...), "trailing bytes"},
		{"T-17 a trailing byte", append(bytes.Clone(b), 0), "trailing bytes"},
		{"T-17 twice", append(bytes.Clone(b), b...), "trailing bytes"},
		{"end at once", join(), "missing member"},
		{"missing last", join(ms[:last]...), "missing member"},
		{"missing first", join(ms[1:]...), "unexpected member"},
		{"T-27 missing in the middle", join(slices.Delete(slices.Clone(ms), 8, 9)...), "must come first"},
		{"T-42 duplicate D", insert(3, ms[2]), "duplicate member"},
		{"T-42 duplicate last", insert(last+1, ms[last]), "duplicate member"},
		{"T-42 duplicate layout", insert(last+1, ms[0]), "duplicate member"},
		{"T-27 out of order", swap(last, last-1), "must come first"},
		{"T-27 manifests out of order", swap(6, 7), "must come first"},
		{"stranger", insert(last+1, madeBlob([]byte("stranger"))), "unexpected member"},
		{"stranger in the head", insert(4, madeBlob([]byte("stranger"))), "unexpected member"},
		{"first of all a stranger", insert(0, madeBlob([]byte("stranger"))), "unexpected member"},
		{"T-41 pax", put(3, with(ms[3], offType, "x")), "PAX"},
		{"T-41 pax global", put(0, with(ms[0], offType, "g")), "PAX"},
		{"T-41 gnu long name", put(3, with(ms[3], offType, "L")), "GNU"},
		{"T-41 gnu sparse", put(3, with(ms[3], offType, "S")), "GNU"},
		{"T-19 hard link", put(3, with(ms[3], offType, "1")), "link, directory or device"},
		{"T-19 symlink", put(3, with(ms[3], offType, "2")), "link, directory or device"},
		{"T-19 device", put(3, with(ms[3], offType, "3")), "link, directory or device"},
		{"T-19 directory", put(3, with(ms[3], offType, "5")), "link, directory or device"},
		{"T-19 fifo", put(3, with(ms[3], offType, "6")), "link, directory or device"},
		{"old regular type", put(3, with(ms[3], offType, "\x00")), "not canonical"},
		{"mode", put(3, with(ms[3], 100, "0000755")), "not canonical"},
		{"uid", put(3, with(ms[3], 108, "0001750")), "not canonical"},
		{"user name", put(3, with(ms[3], 265, "root")), "not canonical"},
		{"mtime", put(3, with(ms[3], 136, "00000000001")), "not canonical"},
		{"link name", put(3, with(ms[3], 157, "/etc/passwd")), "not canonical"},
		{"prefix", put(3, with(ms[3], 345, "/etc")), "not canonical"},
		{"gnu magic", put(3, with(ms[3], 257, "ustar  \x00")), "not canonical"},
		{"no magic", put(3, with(ms[3], 257, "\x00\x00\x00\x00\x00\x00")), "not canonical"},
		{"bytes behind the header", put(3, with(ms[3], 511, "x")), "not canonical"},
		{"T-41 base-256 size", put(3, with(ms[3], 124, "\x80\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02")), "octal"},
		{"negative size", put(3, with(ms[3], 124, "-0000000002")), "octal"},
		{"size with spaces", put(3, with(ms[3], 124, "          2")), "octal"},
		{"huge size", put(2, with(ms[2], 124, "77777777777")), "bytes, not"},
		{"huge index.json", put(1, with(ms[1], 124, "77777777777")), "at most"},
		{"T-10 dots", put(3, named("blobs/sha256/../../x")), "unexpected member"},
		{"T-10 absolute", put(3, named("/etc/passwd")), "unexpected member"},
		{"T-10 upper case", put(3, named(blobPrefix+strings.ToUpper(ms[3].name()[13:]))), "unexpected member"},
		{"T-10 dot slash", put(3, named("./"+ms[3].name())), "unexpected member"},
		{"T-10 backslash", put(3, named(`blobs\sha256\x`)), "unexpected member"},
		{"T-10 nul in the name", put(3, named("blobs\x00/sha256")), "not canonical"},
		{"T-10 no name", put(3, named("")), "unexpected member"},
		{"oci-layout of another version", put(0, made(layoutName, []byte(`{"imageLayoutVersion":"1.0.1"}`))), "not canonical"},
		{"oci-layout with a newline", put(0, made(layoutName, []byte(layoutBytes+"\n"))), "at most"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Read(ctx, bytes.NewReader(c.b), Options{Policy: policy})
			refused(t, err, c.text)
			_, err = Read(ctx, io.MultiReader(bytes.NewReader(c.b)), Options{Policy: policy, Store: openStore(t)})
			refused(t, err, c.text)
		})
	}
}

func octal(n int) (string, error) {
	b := make([]byte, 8)
	for i := 5; i >= 0; i-- {
		b[i] = byte('0' + n&7)
		n >>= 3
	}
	b[6], b[7] = 0, ' '
	return string(b), nil
}

func TestPointersThatAreNotPlainAreRefused(t *testing.T) {
	k := newKey(t)
	policy := trusting(t, k.Public())
	f := forgeryOf(t, specOf(100, k))
	change := func(change func(es []v1.Descriptor) []v1.Descriptor) []byte {
		f := f
		f.entries = change
		return join(f.members(t)...)
	}
	at := func(i int, g func(*v1.Descriptor)) []byte {
		return change(func(es []v1.Descriptor) []v1.Descriptor { g(&es[i]); return es })
	}
	stranger := descriptor(v1.MediaTypeImageManifest, "", []byte("x"))
	for _, c := range []struct {
		name string
		b    []byte
		text string
	}{
		{"none", change(func([]v1.Descriptor) []v1.Descriptor { return []v1.Descriptor{} }), "no entry"},
		{"another name", at(0, func(d *v1.Descriptor) { d.Annotations = map[string]string{v1.AnnotationRefName: "x"} }), "no bundle"},
		{"T-51 another product", at(0, func(d *v1.Descriptor) { d.ArtifactType = "application/x" }), "no bundle"},
		{"signatures out of order", change(func(es []v1.Descriptor) []v1.Descriptor {
			d := es[1]
			d.Digest = digest.NewDigestFromEncoded(digest.SHA256, strings.Repeat("0", 64))
			return append(es, d)
		}), "out of order"},
		{"an entry more", change(func(es []v1.Descriptor) []v1.Descriptor { return append(es, stranger) }), "no part of the bundle"},
		{"a stranger first", change(func(es []v1.Descriptor) []v1.Descriptor { return append([]v1.Descriptor{stranger}, es...) }), "no bundle"},
		{"platform", at(0, func(d *v1.Descriptor) { d.Platform = &v1.Platform{OS: "linux", Architecture: "amd64"} }), "more than it may"},
		{"inline data", at(1, func(d *v1.Descriptor) { d.Data = []byte("x") }), "more than it may"},
		{"url", at(1, func(d *v1.Descriptor) { d.URLs = []string{"http://x/"} }), "more than it may"},
		{"annotation", at(1, func(d *v1.Descriptor) { d.Annotations = map[string]string{"x": "y"} }), "more than it may"},
		{"size too small", at(0, func(d *v1.Descriptor) { d.Size-- }), "bytes, not"},
		{"size too large", at(1, func(d *v1.Descriptor) { d.Size++ }), "bytes, not"},
		{"size huge", at(0, func(d *v1.Descriptor) { d.Size = 1 << 40 }), "at most"},
		{"size negative", at(0, func(d *v1.Descriptor) { d.Size = -1 }), "at most"},
		{"T-39 digest with dots", at(0, func(d *v1.Descriptor) { d.Digest = "sha256:../../../etc/passwd" }), "no SHA-256 digest"},
		{"T-39 digest in upper case", at(0, func(d *v1.Descriptor) { d.Digest = digest.Digest("sha256:" + strings.ToUpper(d.Digest.Encoded())) }), "no SHA-256 digest"},
		{"T-39 digest short", at(0, func(d *v1.Descriptor) { d.Digest = d.Digest[:70] }), "no SHA-256 digest"},
		{"T-39 digest sha512", at(0, func(d *v1.Descriptor) { d.Digest = digest.SHA512.FromString("x") }), "no SHA-256 digest"},
		{"T-39 digest empty", at(0, func(d *v1.Descriptor) { d.Digest = "" }), "no SHA-256 digest"},
		{"T-47 seventeen signatures", change(func(es []v1.Descriptor) []v1.Descriptor {
			for i := range 16 {
				d := es[1]
				d.Digest = digest.NewDigestFromEncoded(digest.SHA256, fmt.Sprintf("%064x", i)) // before all others
				es = slices.Insert(es, 1+i, d)
			}
			return es
		}), "at most 16"},
	} {
		t.Run(c.name, func(t *testing.T) { untouched(t, c.b, policy, c.text) })
	}
	for name, spell := range map[string]func([]byte) []byte{
		"white space": func(b []byte) []byte { return append(b, '\n') },
		"bom":         func(b []byte) []byte { return append([]byte("\xef\xbb\xbf"), b...) },
		"duplicate key": func(b []byte) []byte {
			return bytes.Replace(b, []byte(`"schemaVersion":2`), []byte(`"schemaVersion":2,"schemaVersion":2`), 1)
		},
		"order": func(b []byte) []byte {
			return must[[]byte](t)(json.Marshal(must[v1.Index](t)(decoded(b))))
		},
		"other case": func(b []byte) []byte { return bytes.Replace(b, []byte(`"manifests"`), []byte(`"Manifests"`), 1) },
	} {
		t.Run(name, func(t *testing.T) {
			ms := f.members(t)
			ms[1] = made(indexName, spell(bytes.Clone(ms[1].body)))
			untouched(t, join(ms...), policy, "index.json: ")
		})
	}
}

func decoded(b []byte) (x v1.Index, err error) { return x, json.Unmarshal(b, &x) }
