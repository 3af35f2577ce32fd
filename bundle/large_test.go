//go:build machine

package bundle

import (
	"crypto/x509"
	"encoding/hex"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/opencontainers/go-digest"
)

// eight is just below what a member can have, 8 GiB.
const eight = 8<<30 - 1<<20

// holes is a bundle of 8 GB in a file that is all holes but for its head: Build
// would write them.
func holes(t *testing.T) (path string, key string) {
	t.Helper()
	k := newKey(t)
	h := digest.SHA256.Digester()
	must[int64](t)(io.CopyBuffer(struct{ io.Writer }{h.Hash()}, io.LimitReader(zero{}, eight), make([]byte, 1<<20)))
	spec := specOf(100, k)
	spec.Payload = append(spec.Payload, Blob{Digest: h.Digest(), Size: eight, Title: "zeros",
		Open: func() (io.ReadCloser, error) { return io.NopCloser(io.LimitReader(zero{}, eight)), nil }})
	spec.Declarations[0].Needs = append(spec.Declarations[0].Needs, h.Digest())
	p := must[*plan](t)(newPlan(spec))
	path = filepath.Join(t.TempDir(), "b")
	f := must[*os.File](t)(os.Create(path))
	defer f.Close()
	last := p.pieces[len(p.pieces)-1]
	p.pieces = p.pieces[:len(p.pieces)-1]
	for _, piece := range p.pieces {
		if err := piece.write(ctx, f, func(int) {}); err != nil {
			t.Fatal(err)
		}
	}
	head := header(last.name, last.size)
	must[int](t)(f.Write(head[:]))
	at := must[int64](t)(f.Seek(0, io.SeekCurrent))
	if err := f.Truncate(at + eight + 2*blockSize); err != nil {
		t.Fatal(err)
	}
	return path, hex.EncodeToString(must[[]byte](t)(x509.MarshalPKIXPublicKey(k.Public())))
}

// TestT26T46EightGigabytesInSixtyFourMebibytes reads 8 GB through a pipe in a process
// that may have 64 MiB, and shows the head of the same file (T-26): less than 1 MiB
// of it is read.
func TestT26T46EightGigabytesInSixtyFourMebibytes(t *testing.T) {
	path, key := holes(t)
	public := must[any](t)(x509.ParsePKIXPublicKey(must[[]byte](t)(hex.DecodeString(key))))
	f := must[*os.File](t)(os.Open(path))
	defer f.Close()
	c := &counting{ReadSeeker: f}
	info := must[*Info](t)(Inspect(ctx, c, trusting(t, public)))
	if c.n > 1<<20 || info.Size < eight {
		t.Errorf("%d bytes of a bundle with %d of content were read", c.n, info.Size)
	}

	cat := exec.Command("cat", path)
	read := exec.Command(os.Args[0], "-test.run=^TestVerifyInAProcessOfItsOwn$")
	read.Env = append(os.Environ(), "BUNDLE_LARGE_KEY="+key)
	read.Stdin = must[io.ReadCloser](t)(cat.StdoutPipe())
	if err := cat.Start(); err != nil {
		t.Fatal(err)
	}
	out, err := read.CombinedOutput()
	if werr := cat.Wait(); err != nil || werr != nil {
		t.Fatalf("%v, %v\n%s", err, werr, out)
	}
	rss := read.ProcessState.SysUsage().(*syscall.Rusage).Maxrss / 1024
	t.Logf("8 GB in %v of processor time and %d MiB", read.ProcessState.UserTime()+read.ProcessState.SystemTime(), rss)
	if rss > 64 {
		t.Errorf("it took %d MiB", rss)
	}
}

// TestVerifyInAProcessOfItsOwn is no test but what the one above runs.
func TestVerifyInAProcessOfItsOwn(t *testing.T) {
	key := os.Getenv("BUNDLE_LARGE_KEY")
	if key == "" {
		t.Skip("run by TestT26T46")
	}
	public := must[any](t)(x509.ParsePKIXPublicKey(must[[]byte](t)(hex.DecodeString(key))))
	must[*Info](t)(Read(ctx, os.Stdin, Options{Policy: trusting(t, public)}))
}
