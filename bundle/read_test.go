package bundle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/bundle/content"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

func TestABundleComesBackAsItWasWritten(t *testing.T) {
	k := newKey(t)
	spec := specOf(100_000, k)
	b := bytesOf(t, spec)
	for name, r := range map[string]io.Reader{
		"file":            bytes.NewReader(b),
		"pipe":            io.MultiReader(bytes.NewReader(b)),
		"one byte a time": iotest.OneByteReader(bytes.NewReader(b)),
		"data with EOF":   iotest.DataErrReader(bytes.NewReader(b)),
	} {
		t.Run(name, func(t *testing.T) {
			store, policy := openStore(t), trusting(t, k.Public())
			var last Progress
			admitted := false
			before := listing(t, store)
			info, err := Read(ctx, r, Options{Policy: policy, Store: store,
				Progress: func(p Progress) { last = p },
				Admit: func(i *Info) error {
					admitted = i.Name == "site" && i.Counter == 7 && len(i.Signers) == 1 && listing(t, store) == before
					return nil
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			if !admitted {
				t.Error("not admitted on what was verified, before anything was written")
			}
			if last.Done != last.Total || last.Total != info.Size || info.Size != 100_000+5+7+7 {
				t.Errorf("progress %+v, size %d", last, info.Size)
			}
			if info.Version != "1.2.3" || info.Architecture != "x86_64" || info.MinimumHost != "1.0.0" ||
				!info.Created.Equal(time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)) {
				t.Errorf("%+v", info)
			}
			var titles []string
			for _, m := range info.Members {
				titles = append(titles, m.Title)
			}
			if want := []string{"a.json", "b.json", "empty", "once", "again", "large"}; !slices.Equal(titles, want) {
				t.Errorf("members %q", titles)
			}
			for i, want := range []string{`{"a":1}`, `{"b":1}`} {
				if got, err := info.Declaration(info.Declarations[i].Digest); err != nil || string(got) != want {
					t.Errorf("declaration %q %v", got, err)
				}
			}
			for _, p := range spec.Payload {
				want := must[[]byte](t)(io.ReadAll(must[io.ReadCloser](t)(p.Open())))
				if got, err := store.Read(p.Digest, 1<<20); err != nil || !bytes.Equal(got, want) {
					t.Errorf("%s: %v", p.Title, err)
				}
			}
			again, err := Stored(ctx, store, info.Digest, policy)
			if err != nil || !slices.Equal(again.Members, info.Members) || again.Name != "site" || len(again.Signers) != 1 {
				t.Errorf("%+v %v", again, err)
			}
			verified, err := Read(ctx, bytes.NewReader(b), Options{Policy: policy})
			if err != nil {
				t.Fatal(err)
			}
			if got, err := verified.Declaration(verified.Declarations[1].Digest); err != nil || string(got) != `{"b":1}` {
				t.Errorf("%q %v", got, err)
			}
		})
	}
}

func TestT21TwoBuildsAreTheSameBytes(t *testing.T) {
	k, other := newKey(t), newKey(t)
	spec := specOf(1000, k, other)
	want := bytesOf(t, spec)
	old := syscall.Umask(0o077)
	procs := runtime.GOMAXPROCS(1)
	spec.Created = spec.Created.In(time.FixedZone("x", -9*3600)).Add(time.Nanosecond)
	path := filepath.Join(t.TempDir(), "other name")
	_, err := Build(ctx, path, spec)
	runtime.GOMAXPROCS(procs)
	syscall.Umask(old)
	if err != nil {
		t.Fatal(err)
	}
	if got := must[[]byte](t)(os.ReadFile(path)); !bytes.Equal(got, want) {
		t.Error("they differ")
	}
	if fi := must[os.FileInfo](t)(os.Stat(path)); fi.Mode().Perm() != 0o644 {
		t.Errorf("mode %v", fi.Mode())
	}
}

func TestT03ABundleCutAnywhereIsRefused(t *testing.T) {
	t.Parallel()
	k := newKey(t)
	policy := trusting(t, k.Public())
	b := bytesOf(t, specOf(8000, k))
	if len(b) > 64<<10 {
		t.Fatalf("%d bytes", len(b))
	}
	store := openStore(t)
	before := listing(t, store)
	var d digest.Digest
	end := 0 // of the last manifest
	for _, m := range split(t, b) {
		if bytes.HasPrefix(m.body, []byte(`{"a":1}`)) {
			end = bytes.Index(b, m.head[:])
		}
	}
	for n := 0; n < len(b); n++ {
		if n > end && n%512 > 1 && n%512 < 511 {
			n = min(n+12, len(b)-1) // inside a block of content the place makes no difference
		}
		opts := Options{Policy: policy}
		if n < end {
			opts.Store = store
		}
		_, err := Read(ctx, bytes.NewReader(b[:n]), opts)
		refused(t, err, "truncated (got ")
		if t.Failed() {
			t.Fatalf("cut at %d", n)
		}
	}
	if listing(t, store) != before {
		t.Error("something was written before the manifests were whole")
	}
	info := must[*Info](t)(Read(ctx, bytes.NewReader(b), Options{Policy: policy}))
	d = info.Digest
	large := bytesOf(t, specOf(1<<20, k))
	for range 40 {
		n := len(b) + rand.IntN(len(large)-len(b))
		s := openStore(t)
		_, err := Read(ctx, bytes.NewReader(large[:n]), Options{Policy: policy, Store: s})
		refused(t, err, "truncated (got ")
		sound(t, s, d)
	}
}

func TestT03EveryFlippedByteIsRefused(t *testing.T) {
	t.Parallel()
	k := newKey(t)
	policy := trusting(t, k.Public())
	b := bytesOf(t, specOf(3000, k))
	store := openStore(t)
	before := listing(t, store)
	ms := split(t, b)
	manifests := 0
	for i, m := range ms {
		if bytes.Equal(m.body, []byte(`{"a":1}`)) {
			manifests = i
		}
	}
	head := bytes.Index(b, ms[manifests].head[:])
	for i := range head {
		bad := bytes.Clone(b)
		bad[i] ^= 1 << (i % 8)
		_, err := Read(ctx, bytes.NewReader(bad), Options{Policy: policy, Store: store})
		refused(t, err, "")
		if t.Failed() {
			t.Fatalf("byte %d", i)
		}
	}
	if listing(t, store) != before {
		t.Error("something was written before there was a reason to believe it")
	}
	info := must[*Info](t)(Read(ctx, bytes.NewReader(b), Options{Policy: policy}))
	for i := head; i < len(b); i += 11 {
		bad := bytes.Clone(b)
		bad[i] ^= 1 << (i % 8)
		_, err := Read(ctx, bytes.NewReader(bad), Options{Policy: policy})
		refused(t, err, "")
		if t.Failed() {
			t.Fatalf("byte %d", i)
		}
	}
	for i := manifests; i < len(ms); i++ {
		if len(ms[i].body) == 0 {
			continue
		}
		bad := slices.Clone(ms)
		bad[i].body = bytes.Clone(bad[i].body)
		bad[i].body[len(bad[i].body)/2] ^= 1
		s := openStore(t)
		_, err := Read(ctx, bytes.NewReader(join(bad...)), Options{Policy: policy, Store: s})
		refused(t, err, "digest mismatch")
		refused(t, err, bad[i].name())
		remedied(t, err, "copy or download the file again")
		if title := titleOf(info, bad[i].name()); title != "" {
			refused(t, err, bad[i].name()+`" ("`+title+`")`)
		}
		sound(t, s, info.Digest)
	}
}

func TestT32ASecondReadingWritesNothing(t *testing.T) {
	k := newKey(t)
	b := bytesOf(t, specOf(100_000, k))
	store := openStore(t)
	opts := Options{Policy: trusting(t, k.Public()), Store: store}
	info := must[*Info](t)(Read(ctx, bytes.NewReader(b), opts))
	before := listing(t, store)
	must[*Info](t)(Read(ctx, bytes.NewReader(b), opts))
	must[*Info](t)(Read(ctx, iotest.HalfReader(bytes.NewReader(b)), opts))
	must[*content.Store](t)(content.Open(store.Dir()))
	if after := listing(t, store); after != before {
		t.Errorf("before\n%safter\n%s", before, after)
	}
	// One blob vanishes: it alone is written again.
	gone := info.Members[len(info.Members)-1].Digest
	if err := store.Drop(gone); err != nil {
		t.Fatal(err)
	}
	if _, err := Stored(ctx, store, info.Digest, opts.Policy); err == nil || fault.RemedyOf(err) == "" || fault.KindOf(err) != fault.Failed {
		t.Errorf("a bundle with a hole: %v", err)
	}
	must[*Info](t)(Read(ctx, bytes.NewReader(b), opts))
	if !store.Has(gone, 100_000) {
		t.Error("it was not restored")
	}
	same := func(l string) string {
		var keep []string
		for _, line := range strings.Split(l, "\n") {
			f := strings.Fields(line)
			if len(f) == 5 && strings.Contains(f[0], "sha256/") && !strings.Contains(f[0], gone.Encoded()) {
				keep = append(keep, line)
			}
		}
		return strings.Join(keep, "\n")
	}
	if same(listing(t, store)) != same(before) {
		t.Error("another blob was written too")
	}
}

func TestAnInterruptedReadingGoesOn(t *testing.T) {
	k := newKey(t)
	b := bytesOf(t, specOf(300_000, k))
	policy := trusting(t, k.Public())
	whole := must[*Info](t)(Read(ctx, bytes.NewReader(b), Options{Policy: policy}))
	cable := errors.New("the cable")
	store := openStore(t)
	for n := 0; n < len(b); n += len(b)/29 + 1 {
		r := io.MultiReader(bytes.NewReader(b[:n]), iotest.ErrReader(cable))
		_, err := Read(ctx, r, Options{Policy: policy, Store: store})
		if !errors.Is(err, cable) || fault.KindOf(err) != fault.Failed {
			t.Fatalf("at %d: %v", n, err)
		}
		sound(t, store, whole.Digest)
	}
	small := filepath.Join(store.Dir(), "blobs/sha256", whole.Declarations[0].Digest.Encoded())
	before := must[os.FileInfo](t)(os.Stat(small))
	must[*Info](t)(Read(ctx, bytes.NewReader(b), Options{Policy: policy, Store: store}))
	if after := must[os.FileInfo](t)(os.Stat(small)); !os.SameFile(before, after) {
		t.Error("a whole blob was written again")
	}
	must[*Info](t)(Stored(ctx, store, whole.Digest, policy))
}

// written is how many bytes this process has handed to write(2) and its like
// (wchar, proc_pid_io(5)).
func written(t *testing.T) int64 {
	t.Helper()
	b, err := os.ReadFile("/proc/self/io")
	if err != nil {
		t.Skipf("the kernel does not count: %v", err)
	}
	var r, w int64
	must[int](t)(fmt.Sscanf(string(b), "rchar: %d\nwchar: %d\n", &r, &w))
	return w
}

func TestAnInterruptedReadingWritesOnlyTheRest(t *testing.T) {
	const blobs, size = 8, 1 << 20
	k := newKey(t)
	spec := heavy(t, blobs*size, blobs, k)
	b := bytesOf(t, spec)
	opts := Options{Policy: trusting(t, k.Public()), Store: openStore(t)}
	cut := len(b) - 3*size + size/2 // in the sixth of eight
	cable := errors.New("the cable")
	_, err := Read(ctx, io.MultiReader(bytes.NewReader(b[:cut]), iotest.ErrReader(cable)), opts)
	if !errors.Is(err, cable) {
		t.Fatal(err)
	}
	before := written(t)
	must[*Info](t)(Read(ctx, bytes.NewReader(b), opts))
	if n := written(t) - before; n < 3*size || n > 3*size+64<<10 { // and what go test writes down
		t.Errorf("%d bytes were written for the last 3 blobs of %d", n, size)
	}
	same := listing(t, opts.Store)
	must[*Info](t)(Read(ctx, bytes.NewReader(b), opts))
	if listing(t, opts.Store) != same {
		t.Error("a third reading wrote something")
	}
}

func TestACancelledReadingEnds(t *testing.T) {
	k := newKey(t)
	b := bytesOf(t, specOf(300_000, k))
	store := openStore(t)
	cancelled, cancel := context.WithCancel(ctx)
	defer cancel()
	info := must[*Info](t)(Read(ctx, bytes.NewReader(b), Options{Policy: trusting(t, k.Public())}))
	_, err := Read(cancelled, bytes.NewReader(b), Options{Policy: trusting(t, k.Public()), Store: store,
		Progress: func(p Progress) {
			if p.Done > 100_000 {
				cancel()
			}
		}})
	if !errors.Is(err, cancelled.Err()) || fault.KindOf(err) != fault.Failed {
		t.Errorf("%v", err)
	}
	sound(t, store, info.Digest)
}

func TestWhatAdmitRefusesIsNotWritten(t *testing.T) {
	k := newKey(t)
	store := openStore(t)
	before := listing(t, store)
	older := fault.Refusedf("older than what was applied")
	_, err := Read(ctx, bytes.NewReader(bytesOf(t, specOf(100, k))), Options{
		Policy: trusting(t, k.Public()), Store: store, Admit: func(*Info) error { return older },
	})
	if err != error(older) || listing(t, store) != before {
		t.Errorf("%v", err)
	}
}

func TestAStoreThatHasItAllDoesNotHideACut(t *testing.T) {
	k := newKey(t)
	b := bytesOf(t, specOf(4096, k))
	opts := Options{Policy: trusting(t, k.Public()), Store: openStore(t)}
	must[*Info](t)(Read(ctx, bytes.NewReader(b), opts))
	before := listing(t, opts.Store)
	for n := len(b) - 6000; n < len(b); n += 250 {
		_, err := Read(ctx, bytes.NewReader(b[:n]), opts)
		refused(t, err, "truncated (got ")
	}
	if listing(t, opts.Store) != before {
		t.Error("something was written")
	}
}

// counting counts what is read of a file and lets it seek.
type counting struct {
	io.ReadSeeker
	n int
}

func (c *counting) Read(p []byte) (int, error) {
	n, err := c.ReadSeeker.Read(p)
	c.n += n
	return n, err
}

func TestT26InspectReadsLittle(t *testing.T) {
	k := newKey(t)
	c := &counting{ReadSeeker: bytes.NewReader(bytesOf(t, specOf(4<<20, k)))}
	info := must[*Info](t)(Inspect(ctx, c, trusting(t, k.Public())))
	if c.n > 32<<10 || len(info.Members) != 6 || info.Members[5].Size != 4<<20 {
		t.Errorf("%d bytes read, %+v", c.n, info.Members)
	}
	if _, err := info.Declaration(info.Declarations[0].Digest); err == nil {
		t.Error("a declaration that was not read")
	}
	_, err := Inspect(ctx, c, trusting(t, newKey(t).Public()))
	refused(t, err, "")
}

func TestT46MemoryDoesNotGrowWithTheContent(t *testing.T) {
	k := newKey(t)
	const size = 96 << 20
	zeros := func() io.Reader { return io.LimitReader(zero{}, size) }
	h := digest.SHA256.Digester()
	must[int64](t)(io.Copy(h.Hash(), zeros()))
	spec := specOf(100, k)
	spec.Payload = append(spec.Payload, Blob{Digest: h.Digest(), Size: size, Title: "zeros",
		Open: func() (io.ReadCloser, error) { return io.NopCloser(zeros()), nil }})
	spec.Declarations[0].Needs = append(spec.Declarations[0].Needs, h.Digest())
	p := must[*plan](t)(newPlan(spec))
	r, w := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- w.CloseWithError(p.write(ctx, w, nil)) }()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	must[*Info](t)(Read(ctx, r, Options{Policy: trusting(t, k.Public())}))
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 8<<20 {
		t.Errorf("%d bytes were allocated for %d", n, size)
	}
}

type zero struct{}

func (zero) Read(p []byte) (int, error) { clear(p); return len(p), nil }
