package check

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/bundle"
)

// TestDeclarationsNameWhatIsInACompressedFile: a bundle whose declaration names the
// compressed bytes is signed, whole, and would put them in the place of a program.
func TestDeclarationsNameWhatIsInACompressedFile(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	content := bytes.Repeat([]byte("a program\n"), 1000)
	z, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	packed := z.EncodeAll(content, nil)
	plain, compressed := digest.FromBytes(content), digest.FromBytes(packed)
	other := digest.FromString("not in it")
	for _, c := range []struct {
		name, want string
		sources    []digest.Digest
	}{
		{"what is in it", "", []digest.Digest{plain}},
		{"as it is compressed", fmt.Sprintf("resource \"r0\" names \"tool\" as it is compressed (%s), not what is in it (%s)", compressed, plain), []digest.Digest{compressed}},
		{"both", "names \"tool\" as it is compressed", []digest.Digest{plain, compressed}},
		{"neither", "no declaration names \"tool\"", nil},
		{"what is not there as well", fmt.Sprintf("resource \"r1\" names %s, which is not in it", other), []digest.Digest{plain, other}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var resources []string
			for i, s := range c.sources {
				resources = append(resources, fmt.Sprintf(`{"id": "r%d", "type": "file", "path": "/opt/%d", "source": %q}`, i, i, s))
			}
			info, err := bundle.Build(t.Context(), filepath.Join(t.TempDir(), "b"), bundle.Spec{
				Name: "nox-mesh", Version: "1.0.0", Architecture: "x86_64", Counter: 1, Signers: []crypto.Signer{key},
				Declarations: []bundle.Declaration{{
					Title: "d.json", Needs: []digest.Digest{plain},
					Bytes: []byte(`{"schema": 1, "name": "d", "resources": [` + strings.Join(resources, ", ") + `]}`),
				}},
				Payload: []bundle.Blob{{
					Digest: compressed, Size: int64(len(packed)), Title: "tool", MediaType: bundle.MediaTypeFileZstd,
					Expanded: bundle.Expanded{Digest: plain, Size: int64(len(content))},
					Open:     func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(packed)), nil },
				}},
			})
			if err != nil {
				t.Fatal(err)
			}
			err = declared("x.bundle.tar", info)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}
