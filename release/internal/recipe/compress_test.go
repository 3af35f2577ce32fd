package recipe

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/bundle"
)

func TestACompressedFileIsNamedByWhatIsInIt(t *testing.T) {
	tool := strings.Repeat("a tool that repeats itself\n", 100000)
	files := map[string]string{"bundle.toml": plainRecipe + "compress = true\n", "web.json": plainDeclaration, "tool.bin": tool}
	s, err := specOf(t, files, Given{})
	if err != nil {
		t.Fatal(err)
	}
	b := s.Payload[0]
	if b.MediaType != bundle.MediaTypeFileZstd || b.Expanded.Digest != digest.FromString(tool) || b.Expanded.Size != int64(len(tool)) || b.Size > b.Expanded.Size/10 {
		t.Errorf("%+v", b)
	}
	if !strings.Contains(string(s.Declarations[0].Bytes), digest.FromString(tool).String()) {
		t.Errorf("%s", s.Declarations[0].Bytes)
	}
	if _, err := bundle.Preview(s); err != nil {
		t.Error(err)
	}
	r, err := b.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	packed, err := io.ReadAll(r)
	if err != nil || digest.FromBytes(packed) != b.Digest || int64(len(packed)) != b.Size {
		t.Errorf("opened, it is %d bytes, %s: %v", len(packed), digest.FromBytes(packed), err)
	}
	again, err := specOf(t, files, Given{})
	if err != nil || again.Payload[0].Digest != b.Digest {
		t.Errorf("a second time it is %s, not %s (%v)", again.Payload[0].Digest, b.Digest, err)
	}
	zstd, err := exec.LookPath("zstd")
	if err != nil {
		t.Skip("zstd is not here to read it")
	}
	c := exec.Command(zstd, "-dc")
	c.Stdin = bytes.NewReader(packed)
	if got, err := c.Output(); err != nil || string(got) != tool {
		t.Errorf("zstd reads %d bytes: %v", len(got), err)
	}
}

// It must not matter how the content arrives.
func TestCompressionDependsOnTheContentOnly(t *testing.T) {
	content := bytes.Repeat([]byte("some content, and some more of it "), 20000)
	var first []byte
	for _, from := range []io.Reader{bytes.NewReader(content), &slow{content}} {
		c, err := compress(from, io.NopCloser(nil))
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(c)
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = got
		} else if !bytes.Equal(got, first) {
			t.Error("arriving slowly it is compressed to something else")
		}
	}
}

// slow gives 1000 bytes at once.
type slow struct{ b []byte }

func (s *slow) Read(p []byte) (int, error) {
	if len(s.b) == 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), 1000)], s.b)
	s.b = s.b[n:]
	return n, nil
}

func TestFilesOfAnySizeAreCompressed(t *testing.T) {
	for _, size := range []int{0, 1, 128 << 10, 128<<10 + 1, 1 << 20} {
		path := filepath.Join(t.TempDir(), "x")
		if err := os.WriteFile(path, make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
		b, err := (&files{ctx: t.Context()}).compressed("x", path)
		if err != nil || b.Expanded.Size != int64(size) || b.Size == 0 {
			t.Errorf("%d bytes: %+v, %v", size, b, err)
		}
	}
}
