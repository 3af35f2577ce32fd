package content

import (
	"bytes"
	"testing"

	"github.com/opencontainers/go-digest"
)

func TestAGroupIsWithinItsBoundOrOneLargerBlob(t *testing.T) {
	s := open(t, t.TempDir())
	w, err := s.Writer()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	w.most = 64 << 10
	// What waits after each, in KiB.
	for i, c := range []struct{ size, waits int64 }{
		{40, 40}, {24, 0}, {40, 40}, {25, 25}, {65, 0}, {1, 1}, {63, 0},
	} {
		b := bytes.Repeat([]byte{byte(i + 1)}, int(c.size)<<10)
		if err := w.Put(ctx, digest.FromBytes(b), int64(len(b)), bytes.NewReader(b)); err != nil {
			t.Fatal(err)
		}
		if w.bytes != c.waits<<10 {
			t.Errorf("after blob %d of %d KiB %d KiB wait, not %d", i, c.size, w.bytes>>10, c.waits)
		}
	}
	for i := range 2 * groupParts {
		b := []byte{byte(i), 1}
		if err := w.Put(ctx, digest.FromBytes(b), 2, bytes.NewReader(b)); err != nil {
			t.Fatal(err)
		}
		if want := (i + 1) % groupParts; len(w.group) != want {
			t.Errorf("after %d small blobs %d wait, not %d", i+1, len(w.group), want)
		}
	}
}
