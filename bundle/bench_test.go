package bundle

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/bundle/content"
)

// noise is content of n bytes that is no other seed's and does not compress.
func noise(seed byte, n int64) io.Reader {
	return io.LimitReader(rand.NewChaCha8([32]byte{seed}), n)
}

// heavy is a bundle of total bytes in so many blobs.
func heavy(tb testing.TB, total int64, blobs int, k *ecdsa.PrivateKey) Spec {
	spec := specOf(100, k)
	for i := range blobs {
		open := func() (io.ReadCloser, error) { return io.NopCloser(noise(byte(i), total/int64(blobs))), nil }
		h := digest.SHA256.Digester()
		must[int64](tb)(io.Copy(h.Hash(), noise(byte(i), total/int64(blobs))))
		spec.Payload = append(spec.Payload, Blob{Digest: h.Digest(), Size: total / int64(blobs), Title: fmt.Sprint("noise-", i), Open: open})
		spec.Declarations[0].Needs = append(spec.Declarations[0].Needs, h.Digest())
	}
	return spec
}

// TestReadInAProcessOfItsOwn is no test but what the benchmark measures: a
// process that reads a bundle from its standard input into a store.
func TestReadInAProcessOfItsOwn(t *testing.T) {
	dir := os.Getenv("BUNDLE_BENCH_STORE")
	if dir == "" {
		t.Skip("run by the benchmark")
	}
	der := must[[]byte](t)(hex.DecodeString(os.Getenv("BUNDLE_BENCH_KEY")))
	key := must[any](t)(x509.ParsePKIXPublicKey(der))
	store := must[*content.Store](t)(content.Open(dir))
	must[*Info](t)(Read(ctx, os.Stdin, Options{Policy: trusting(t, key), Store: store}))
}

// BenchmarkReadAPipeIntoAStore gives the time of a whole process that reads 1 GiB,
// its memory, and the time of SHA-256 alone over the same bytes.
func BenchmarkReadAPipeIntoAStore(b *testing.B) {
	const total = 1 << 30
	for _, blobs := range []int{1, 64} {
		b.Run(fmt.Sprint(blobs), func(b *testing.B) {
			k := newKey(b)
			dir := b.TempDir()
			path := filepath.Join(dir, "b.tar")
			must[*Info](b)(Build(ctx, path, heavy(b, total, blobs, k)))
			der := must[[]byte](b)(x509.MarshalPKIXPublicKey(k.Public()))
			var took, alone time.Duration
			var rss int64
			for b.Loop() {
				f := must[*os.File](b)(os.Open(path))
				began := time.Now()
				h, buf := sha256.New(), make([]byte, 1<<20)
				must[int64](b)(io.CopyBuffer(struct{ io.Writer }{h}, f, buf))
				alone += time.Since(began)
				f.Close()
				store := filepath.Join(dir, "store")
				cat := exec.Command("cat", path)
				read := exec.Command(os.Args[0], "-test.run=^TestReadInAProcessOfItsOwn$")
				read.Env = append(os.Environ(), "BUNDLE_BENCH_STORE="+store, "BUNDLE_BENCH_KEY="+hex.EncodeToString(der))
				if p := os.Getenv("BUNDLE_BENCH_PROFILE"); p != "" {
					read.Args = append(read.Args, "-test.cpuprofile="+p)
				}
				var out bytes.Buffer
				read.Stdout, read.Stderr = &out, &out
				read.Stdin = must[io.ReadCloser](b)(cat.StdoutPipe())
				began = time.Now()
				if err := cat.Start(); err != nil {
					b.Fatal(err)
				}
				err := read.Run()
				took += time.Since(began)
				if _ = cat.Wait(); err != nil {
					b.Fatalf("%v\n%s", err, out.String())
				}
				rss = max(rss, read.ProcessState.SysUsage().(*syscall.Rusage).Maxrss)
				if err := os.RemoveAll(store); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(took.Seconds()/float64(b.N), "s/GiB")
			b.ReportMetric(alone.Seconds()/float64(b.N), "sha256-s/GiB")
			b.ReportMetric(float64(rss)/1024, "MiB-rss")
		})
	}
}
