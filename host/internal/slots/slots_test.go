package slots

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

type note struct {
	Sequence uint64 `json:"sequence"`
	Text     string `json:"text"`
}

func (n *note) Number() *uint64 { return &n.Sequence }

func TestWhatIsWrittenIsReadWhateverWasThere(t *testing.T) {
	slot := func(n note) []byte {
		b, err := Encode(n)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	blank := bytes.Repeat([]byte{0}, Size)
	for name, there := range map[string][]byte{
		"nothing":                         nil,
		"an empty file":                   {},
		"garbage":                         bytes.Repeat([]byte("x"), 3*Size),
		"a first writing, cut in half":    append(slot(note{2, "old"}), blank...),
		"a first writing, the other half": append(bytes.Clone(blank), slot(note{3, "old"})...),
		"two older ones":                  append(slot(note{4, "older"}), slot(note{5, "old"})...),
		"one that is far ahead":           append(slot(note{1 << 40, "old"}), slot(note{5, "old"})...),
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "state")
			if there != nil {
				if err := os.WriteFile(path, there, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			n := note{Text: "new"} // of one that knows of none before
			for range 3 {
				if err := Write(path, &n); err != nil {
					t.Fatal(err)
				}
				got, err := Read[note](path)
				if err != nil || got != n || got.Text != "new" {
					t.Fatalf("read %+v, %v; written %+v", got, err, n)
				}
			}
		})
	}
}

func TestWhatIsNotThereOrNotWholeIsAnError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	if _, err := Read[note](path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("nothing: %v", err)
	}
	if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Read[note](path); !errors.Is(err, ErrDamaged) {
		t.Errorf("damaged: %v", err)
	}
	if err := Write(path, &note{Text: string(bytes.Repeat([]byte("x"), Size))}); err == nil {
		t.Error("what does not fit was written")
	}
	other := path + ".other"
	if err := os.Symlink(path, other); err != nil {
		t.Fatal(err)
	}
	if err := Write(other, &note{}); err == nil {
		t.Error("a link was followed")
	}
}
