package bundle

import (
	"archive/tar"
	"bytes"
	"strings"
	"testing"
)

func TestHeaderIsTheOneOfArchiveTar(t *testing.T) {
	for _, size := range []int64{0, 1, 511, 512, 1 << 20, maxMember} {
		name := blobPrefix + strings.Repeat("a", 64)
		var want bytes.Buffer
		w := tar.NewWriter(&want)
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o644, Format: tar.FormatUSTAR}); err != nil {
			t.Fatal(err)
		}
		got := header(name, size)
		if !bytes.Equal(got[:], want.Bytes()) {
			t.Errorf("size %d:\n%q\n%q", size, got, want.Bytes())
		}
		n, s, err := parseHeader(&got)
		if n != name || s != size || err != nil {
			t.Errorf("%q %d %v", n, s, err)
		}
	}
}

func TestEveryFlippedBitOfAHeaderIsRefused(t *testing.T) {
	good := header(blobPrefix+strings.Repeat("a", 64), 1234)
	for i := range good {
		for bit := range 8 {
			bad := good
			bad[i] ^= 1 << bit
			if _, _, err := parseHeader(&bad); err == nil {
				t.Fatalf("byte %d bit %d", i, bit)
			}
		}
	}
}
