package bundle

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"encoding/binary"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/klauspost/compress/zstd"
	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

func squeeze(t testing.TB, b []byte, opts ...zstd.EOption) []byte {
	t.Helper()
	w := must[*zstd.Encoder](t)(zstd.NewWriter(nil, append([]zstd.EOption{zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(maxWindow)}, opts...)...))
	defer w.Close()
	return w.EncodeAll(b, nil)
}

// compressedSpec is a bundle whose declaration needs content, which it carries as
// the blob z.
func compressedSpec(k *ecdsa.PrivateKey, z, content []byte) Spec {
	spec := specOf(100, k)
	b := blobOf("tool", z)
	b.MediaType = MediaTypeFileZstd
	b.Expanded = Expanded{Digest: digest.FromBytes(content), Size: int64(len(content))}
	spec.Payload = append(spec.Payload, b)
	spec.Declarations[0].Needs = append(spec.Declarations[0].Needs, b.Expanded.Digest)
	return spec
}

func TestACompressedFileIsExpandedIntoTheStore(t *testing.T) {
	k := newKey(t)
	policy := trusting(t, k.Public())
	for name, content := range map[string][]byte{
		"nothing": nil, "a byte": {7}, "text": bytes.Repeat([]byte("a line of text\n"), 100_000),
		"noise": must[[]byte](t)(io.ReadAll(noise(3, 300_000))),
	} {
		t.Run(name, func(t *testing.T) {
			z := squeeze(t, content)
			b := bytesOf(t, compressedSpec(k, z, content))
			blob, to := digest.FromBytes(z), digest.FromBytes(content)
			for way, r := range map[string]io.Reader{"file": bytes.NewReader(b), "pipe": io.MultiReader(bytes.NewReader(b)), "bytes": iotest.OneByteReader(bytes.NewReader(b))} {
				store := openStore(t)
				var last Progress
				info, err := Read(ctx, r, Options{Policy: policy, Store: store, Progress: func(p Progress) { last = p }})
				if err != nil {
					t.Fatalf("%s: %v", way, err)
				}
				for d, want := range map[digest.Digest][]byte{blob: z, to: content} {
					if got, err := store.Read(d, 1<<24); err != nil || !bytes.Equal(got, want) {
						t.Errorf("%s: %s: %v", way, d, err)
					}
				}
				m := info.Members[slices.IndexFunc(info.Members, func(m Member) bool { return m.Title == "tool" })]
				if m.Digest != blob || m.Content != to || m.ContentSize != int64(len(content)) || m.MediaType != MediaTypeFileZstd {
					t.Errorf("%+v", m)
				}
				if last.Done != last.Total || last.Total != info.Size+int64(len(content)) && to != digest.FromBytes(nil) {
					t.Errorf("%s: progress %+v, size %d", way, last, info.Size)
				}
				// Again: nothing is written. It is gone: it comes back.
				before := listing(t, store)
				must[*Info](t)(Read(ctx, bytes.NewReader(b), Options{Policy: policy, Store: store}))
				if listing(t, store) != before {
					t.Errorf("%s: a second reading wrote", way)
				}
				must[*Info](t)(Stored(ctx, store, info.Digest, policy))
				if err := store.Drop(to); err != nil {
					t.Fatal(err)
				}
				if _, err := Stored(ctx, store, info.Digest, policy); err == nil || fault.RemedyOf(err) == "" {
					t.Errorf("%s: a bundle whose content is gone is there: %v", way, err)
				}
				must[*Info](t)(Read(ctx, bytes.NewReader(b), Options{Policy: policy, Store: store}))
				if !store.Has(to, int64(len(content))) {
					t.Errorf("%s: it was not expanded again", way)
				}
			}
			for _, r := range []io.Reader{bytes.NewReader(b), io.MultiReader(bytes.NewReader(b))} {
				must[*Info](t)(Read(ctx, r, Options{Policy: policy}))
			}
		})
	}
}

func TestABundleMayHaveTheSameFileCompressedAndAsItIs(t *testing.T) {
	k := newKey(t)
	policy := trusting(t, k.Public())
	for name, content := range map[string][]byte{"a byte": {7}, "text": bytes.Repeat([]byte("a line of text\n"), 100_000)} {
		spec := compressedSpec(k, squeeze(t, content), content)
		spec.Payload = append(spec.Payload, blobOf("as it is", content))
		b := bytesOf(t, spec)
		for _, r := range []io.Reader{bytes.NewReader(b), io.MultiReader(bytes.NewReader(b))} {
			store := openStore(t)
			var last Progress
			info, err := Read(ctx, r, Options{Policy: policy, Store: store, Progress: func(p Progress) { last = p }})
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			must[*Info](t)(Stored(ctx, store, info.Digest, policy))
			if last.Done != last.Total {
				t.Errorf("%s: progress %+v", name, last)
			}
		}
	}
}

// Several read one bundle into one store at once: who comes second to a blob finds
// it there, between asking and bringing it.
func TestManyExpandTheSameAtOnce(t *testing.T) {
	k := newKey(t)
	content := bytes.Repeat([]byte("a line of text\n"), 100_000)
	b := bytesOf(t, compressedSpec(k, squeeze(t, content), content))
	for range 8 {
		store := openStore(t)
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				if _, err := Read(ctx, bytes.NewReader(b), Options{Policy: trusting(t, k.Public()), Store: store}); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	}
}

// zstd of the people who made the format is taken as well, whatever the level.
func TestFramesOfTheZstdProgram(t *testing.T) {
	program, err := exec.LookPath("zstd")
	if err != nil {
		t.Skip("zstd is not installed")
	}
	k := newKey(t)
	content := bytes.Repeat(must[[]byte](t)(io.ReadAll(noise(5, 100_000))), 20)
	file := put(t, content)
	for _, args := range [][]string{{"-1"}, {"-19"}, {"-3", "--no-check"}, {"-3", "--no-content-size"}} {
		c := exec.Command(program, append(args, "-c", file)...)
		z := must[[]byte](t)(c.Output())
		b := bytesOf(t, compressedSpec(k, z, content))
		store := openStore(t)
		must[*Info](t)(Read(ctx, bytes.NewReader(b), Options{Policy: trusting(t, k.Public()), Store: store}))
		if !store.Has(digest.FromBytes(content), int64(len(content))) {
			t.Errorf("%v: it was not expanded", args)
		}
	}
	c := exec.Command(program, "--ultra", "-22", "--long=27", "-c", "--no-content-size")
	c.Stdin = io.LimitReader(zero{}, 1)
	z := must[[]byte](t)(c.Output())
	_, err = Build(ctx, filepath.Join(t.TempDir(), "b"), compressedSpec(k, z, []byte{0}))
	refused(t, err, "a window of 134217728 bytes")
}

// block is a block of a frame by hand: raw 0, run-length 1.
func zstdBlock(last bool, kind, size int, body ...byte) []byte {
	n := uint32(size)<<3 | uint32(kind)<<1
	if last {
		n |= 1
	}
	var b [4]byte
	binary.LittleEndian.PutUint32(b[:], n)
	return append(b[:3:3], body...)
}

// TestZstdBombsAndOtherFrames: what was signed and does not expand to exactly what
// was signed with it is refused, from a file as from a pipe, and into a store; no
// more than the signed size is ever written, and little memory is taken.
func TestZstdBombsAndOtherFrames(t *testing.T) {
	k := newKey(t)
	policy := trusting(t, k.Public())
	text := []byte(strings.Repeat("what was signed\n", 100))
	good := squeeze(t, text)
	skippable := []byte("\x50\x2a\x4d\x18\x04\x00\x00\x00abcd")
	noSize := []byte("\x28\xb5\x2f\xfd\x00\x00") // window of 1 KiB, no size, no checksum
	wide := func(b byte) []byte { return []byte{0x28, 0xb5, 0x2f, 0xfd, 0x00, b} }
	bomb := slices.Clone(wide(0x38)) // 128 KiB
	for range 1 << 16 {              // 8 GiB in 262 kB
		bomb = append(bomb, zstdBlock(false, 1, maxZstdBlock, 0)...)
	}
	bomb = append(bomb, zstdBlock(true, 0, 0)...)
	wrongSize := bytes.Clone(squeeze(t, text, zstd.WithSingleSegment(true), zstd.WithEncoderCRC(false)))
	if wrongSize[4] != 0x60 { // single segment, two bytes of size
		t.Fatalf("the frame of the test is %x", wrongSize[:8])
	}
	wrongSize[5]++
	badSum := bytes.Clone(good)
	badSum[len(badSum)-1] ^= 1
	for _, c := range []struct {
		name    string
		z       []byte
		content []byte
		size    int64 // -1 is that of content
		text    string
	}{
		{"zstd bomb, 8 GiB", bomb, text, -1, "more than the 1600 bytes that were signed"},
		{"zstd bomb of nothing", bomb, nil, -1, "more than the 0 bytes"},
		{"zstd bomb that says its size", append([]byte("\x28\xb5\x2f\xfd\xe0\xff\xff\xff\xff\xff\xff\xff\x7f"), zstdBlock(true, 0, 0)...), text, -1, "at most 8589934591 are read"},
		{"zstd bomb of blocks that hold nothing", append(append(slices.Clone(noSize), bytes.Repeat(zstdBlock(false, 0, 0), 100_000)...), zstdBlock(true, 0, 0)...), text, -1, "0 bytes, not the 1600"},
		{"T-17 trailing byte", append(bytes.Clone(good), 0), text, -1, "trailing bytes after its frame"},
		{"T-17 trailing frame", append(bytes.Clone(good), good...), text, -1, "trailing bytes after its frame"},
		{"T-17 trailing empty frame", append(bytes.Clone(good), squeeze(t, nil, zstd.WithZeroFrames(true))...), text, -1, "trailing bytes after its frame"},
		{"T-17 trailing skippable frame", append(bytes.Clone(good), skippable...), text, -1, "trailing bytes after its frame"},
		{"T-17 trailing byte after nothing", append(squeeze(t, nil, zstd.WithZeroFrames(true)), 0), nil, -1, "trailing bytes after its frame"},
		{"skippable first", append(bytes.Clone(skippable), good...), text, -1, "no zstd frame"},
		{"two frames make the content", append(squeeze(t, text[:800]), squeeze(t, text[800:])...), text, -1, "does not expand"},
		{"cut", good[:len(good)-5], text, -1, "its frame is cut"},
		{"cut in its header", good[:4], text, -1, "its frame is cut"},
		{"without its last block", noSize, text, -1, "its frame is cut"},
		{"nothing at all", []byte{}, text, -1, "its frame is cut"},
		{"not compressed", append([]byte("+"), text...), text, -1, "no zstd frame"},
		{"gzip", gzipOf(t, text), text, -1, "no zstd frame"},
		{"dictionary", []byte("\x28\xb5\x2f\xfd\x01\x00\x07\x01\x00\x00"), text, -1, "dictionary"},
		{"reserved bit", []byte("\x28\xb5\x2f\xfd\x08\x00\x01\x00\x00"), text, -1, "reserved"},
		{"reserved block", append(slices.Clone(noSize), zstdBlock(true, 3, 1, 0)...), text, -1, "no known kind"},
		{"window of 8 MiB and an eighth", append(wide(0x69), zstdBlock(true, 0, 0)...), text, -1, "a window of 9437184 bytes"},
		{"window of 3 TiB", append(wide(0xff), zstdBlock(true, 0, 0)...), text, -1, "a window of"},
		{"checksum", badSum, text, -1, "does not expand"},
		{"another content", squeeze(t, append([]byte("W"), text[1:]...)), text, -1, "digest mismatch"},
		{"less", squeeze(t, text[:1500]), text, -1, "1500 bytes, not the 1600"},
		{"more", squeeze(t, append(bytes.Clone(text), 'x')), text, -1, "more than the 1600"},
		{"its frame says another size", wrongSize, text, -1, "does not expand"},
		{"a smaller size is signed", good, text, 1599, ""},
		{"a larger size is signed", good, text, 1601, "1600 bytes, not the 1601"},
	} {
		t.Run(c.name, func(t *testing.T) {
			size := c.size
			if size < 0 {
				size = int64(len(c.content))
			}
			b := withLayer(t, k, c.z, digest.FromBytes(c.content).String(), strconv.FormatInt(size, 10))
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			for _, r := range []io.Reader{bytes.NewReader(b), io.MultiReader(bytes.NewReader(b)), iotest.OneByteReader(bytes.NewReader(b))} {
				_, err := Read(ctx, r, Options{Policy: policy})
				refused(t, err, c.text)
				refused(t, err, `("tool") does not expand`)
				remedied(t, err, "ask its publisher")
			}
			store := openStore(t)
			_, err := Read(ctx, bytes.NewReader(b), Options{Policy: policy, Store: store})
			runtime.ReadMemStats(&after)
			refused(t, err, c.text)
			refused(t, err, `("tool") does not expand`)
			if n := after.TotalAlloc - before.TotalAlloc; n > 64<<20 {
				t.Errorf("%d bytes were allocated", n)
			}
			sound(t, store, digest.FromBytes(split(t, b)[2].body))
			if c.text != "digest mismatch" && store.Has(digest.FromBytes(c.content), -1) && len(c.content) > 0 {
				t.Error("something was expanded")
			}
		})
	}
}

// withLayer is a signed bundle with a compressed layer that says what it is told to.
func withLayer(t testing.TB, k *ecdsa.PrivateKey, z []byte, content, size string) []byte {
	t.Helper()
	l := descriptor(MediaTypeFileZstd, "", z)
	l.Annotations = map[string]string{v1.AnnotationTitle: "tool", annotationContentDigest: content, annotationContentSize: size}
	m := must[[]byte](t)(ours(TypePayload, nil, nil, l))
	f := forgeryOf(t, Spec{Name: "x", Version: "1", Architecture: "x86_64", Signers: []crypto.Signer{k},
		Declarations: []Declaration{{Title: "d", Bytes: []byte("declaration")}}})
	f.index.Manifests = append(f.index.Manifests, descriptor(v1.MediaTypeImageManifest, TypePayload, m))
	f.rest = slices.Insert(f.rest, 1, madeBlob(m))
	f.rest = append(f.rest, madeBlob(z))
	return join(f.members(t)...)
}

func TestWhatACompressedLayerMustSay(t *testing.T) {
	k := newKey(t)
	policy := trusting(t, k.Public())
	z, content := squeeze(t, []byte("content")), digest.FromString("content").String()
	must[*Info](t)(Read(ctx, bytes.NewReader(withLayer(t, k, z, content, "7")), Options{Policy: policy}))
	for _, c := range []struct{ name, digest, size, text string }{
		{"T-39 digest with dots", "sha256:../../x", "7", "the digest of its content"},
		{"T-39 digest in upper case", strings.ToUpper(content), "7", "the digest of its content"},
		{"T-39 no digest", "", "7", "the digest of its content"},
		{"its own digest", digest.FromBytes(z).String(), "7", "the digest of its content"},
		{"no size", content, "", "the size of its content"},
		{"size padded", content, "07", "the size of its content"},
		{"size negative", content, "-7", "the size of its content"},
		{"size with a sign", content, "+7", "the size of its content"},
		{"8 GiB", content, "8589934592", "the size of its content"},
		{"size huge", content, "99999999999999999999", "the size of its content"},
		{"a declaration of another size", digest.FromString("declaration").String(), "7", "with 11 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) { untouched(t, withLayer(t, k, z, c.digest, c.size), policy, c.text) })
	}
	annotated := descriptor(MediaTypeFile, "", z)
	annotated.Annotations = map[string]string{v1.AnnotationTitle: "a", annotationContentDigest: content, annotationContentSize: "7"}
	bare := descriptor(MediaTypeFileZstd, "", z)
	bare.Annotations = map[string]string{v1.AnnotationTitle: "a"}
	for _, l := range []v1.Descriptor{annotated, bare} {
		m := must[[]byte](t)(ours(TypePayload, nil, nil, l))
		untouched(t, signed(t, k, []v1.Descriptor{descriptor(v1.MediaTypeImageManifest, TypePayload, m)}, m), policy, "no title, or more than that")
	}
	spec := compressedSpec(k, z, []byte("content"))
	again := spec.Payload[len(spec.Payload)-1]
	again.Title, again.Expanded.Digest = "tool again", digest.FromString("other")
	spec.Payload = append(spec.Payload, again)
	spec.Declarations[0].Needs = append(spec.Declarations[0].Needs, again.Expanded.Digest)
	_, err := Build(ctx, filepath.Join(t.TempDir(), "b"), spec)
	refused(t, err, "said to be two things")
}

// A store is full of what others left: a compressed blob that has rotted there is
// found out, thrown away, and comes again.
func TestACompressedBlobThatHasRottedInTheStore(t *testing.T) {
	k := newKey(t)
	content := bytes.Repeat([]byte("content\n"), 1000)
	z := squeeze(t, content)
	b := bytesOf(t, compressedSpec(k, z, content))
	opts := Options{Policy: trusting(t, k.Public()), Store: openStore(t)}
	must[*Info](t)(Read(ctx, bytes.NewReader(b), opts))
	if err := opts.Store.Drop(digest.FromBytes(content)); err != nil {
		t.Fatal(err)
	}
	rotten := bytes.Clone(z)
	rotten[len(rotten)/2] ^= 1
	if err := os.WriteFile(filepath.Join(opts.Store.Dir(), blobPrefix+digest.FromBytes(z).Encoded()), rotten, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Read(ctx, bytes.NewReader(b), opts)
	if fault.KindOf(err) != fault.Failed || !strings.Contains(err.Error(), "it was damaged in") {
		t.Errorf("%v", err)
	}
	remedied(t, err, "read the bundle again")
	must[*Info](t)(Read(ctx, bytes.NewReader(b), opts))
	if got, err := opts.Store.Read(digest.FromBytes(content), 1<<20); err != nil || !bytes.Equal(got, content) {
		t.Error(err)
	}
}

// FuzzFrame: what passes our reader of a frame is one frame to the decoder, and
// what the decoder takes as a whole is what comes through ours.
func FuzzFrame(f *testing.F) {
	f.Add(squeeze(f, []byte("text")))
	f.Add(squeeze(f, bytes.Repeat([]byte("text"), 100_000)))
	f.Add(append(squeeze(f, []byte("text")), squeeze(f, []byte("more"))...))
	f.Add([]byte("\x28\xb5\x2f\xfd\x00\x00\x01\x00\x00"))
	whole := must[*zstd.Decoder](f)(zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(1<<20), zstd.WithDecoderMaxWindow(maxWindow)))
	f.Fuzz(func(t *testing.T, b []byte) {
		given, err := io.ReadAll(&frame{r: iotest.OneByteReader(bytes.NewReader(b))})
		if err == nil && !bytes.Equal(given, b) {
			t.Fatalf("%x becomes %x", b, given)
		}
		want, werr := whole.DecodeAll(b, nil)
		if werr != nil || len(want) > 1<<20 {
			return
		}
		e := expansion{to: digest.FromBytes(want), size: int64(len(want))}
		got := e.hash(ctx, bytes.NewReader(b))
		if (err == nil) != (got == nil) {
			t.Fatalf("frame: %v; expanded: %v; the decoder takes it", err, got)
		}
	})
}
