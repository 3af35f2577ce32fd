package input

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

func TestWhatIsOpenedByName(t *testing.T) {
	dir := t.TempDir()
	file, pipe := filepath.Join(dir, "file"), filepath.Join(dir, "pipe")
	if err := errors.Join(os.WriteFile(file, []byte("12345"), 0o600), unix.Mkfifo(pipe, 0o600)); err != nil {
		t.Fatal(err)
	}
	if b, err := ReadFile(file, 5); err != nil || string(b) != "12345" {
		t.Errorf("%q, %v", b, err)
	}
	if _, err := ReadFile(file, 4); fault.KindOf(err) != fault.Refused || !strings.Contains(err.Error(), "more than 4 bytes") {
		t.Errorf("one that is too long: %v", err)
	}
	for _, other := range []string{pipe, dir, "/dev/null"} {
		if _, _, err := Regular(other); !errors.Is(err, ErrNotRegular) || fault.KindOf(err) != fault.Failed || !strings.Contains(err.Error(), other) {
			t.Errorf("%s: %v", other, err)
		}
	}
	if _, err := ReadFile(filepath.Join(dir, "none"), 1); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("one that is not there: %v", err)
	}
	for _, other := range []string{pipe, file} {
		if _, err := Folder(other); !errors.Is(err, unix.ENOTDIR) {
			t.Errorf("%s as a folder: %v", other, err)
		}
	}
	r, err := Folder(dir)
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
}
