package keys

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// TestMishaps: what happens to a directory of keys, and what then helps.
func TestMishaps(t *testing.T) {
	phrase := []byte("correct horse")
	give := func() ([]byte, error) { return phrase, nil }
	made := t.TempDir()
	if _, err := Init(made, phrase, time.Unix(1700000000, 0)); err != nil {
		t.Fatal(err)
	}
	instead := func(name string, put func(path string) error) func(string) error {
		return func(dir string) error {
			path := filepath.Join(dir, name)
			if err := os.Remove(path); err != nil || put == nil {
				return err
			}
			return put(path)
		}
	}
	pipe := func(path string) error { return syscall.Mkfifo(path, 0o600) }
	for _, c := range []struct {
		name         string
		happens      func(dir string) error
		kind         fault.Kind
		says, remedy string
	}{
		{"no root", instead(FirstRoot, nil), fault.Failed, `there is no "1.root.json"`, "each tarball has it"},
		{"no release key", instead(ReleaseKey, nil), fault.Failed, "is not there", "--release"},
		{"no package key", instead(PackageSecret, nil), fault.Failed, "is not there", "--package"},
		{"a pipe for the root", instead(FirstRoot, pipe), fault.Failed, "is not a regular file", ""},
		{"a pipe for the release key", instead(ReleaseKey, pipe), fault.Failed, "is not a regular file", ""},
		{"a pipe for the package key", instead(PackageSecret, pipe), fault.Failed, "is not a regular file", ""},
		{"others may write", func(dir string) error { return os.Chmod(dir, 0o777) }, fault.Refused, "can be written by others", "chmod"},
		{"others may write the root", func(dir string) error { return os.Chmod(filepath.Join(dir, FirstRoot), 0o666) }, fault.Refused, "can be written by others", "chmod"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS(made)); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := c.happens(dir); err != nil {
				t.Fatal(err)
			}
			_, err := Roots(dir)
			if err == nil {
				_, err = Open(dir, ReleaseKey, give)
			}
			if err == nil {
				_, err = OpenPackage(dir, give)
			}
			if fault.KindOf(err) != c.kind || !strings.Contains(err.Error(), c.says) || !strings.Contains(fault.RemedyOf(err), c.remedy) {
				t.Errorf("%v; %s", err, fault.RemedyOf(err))
			}
		})
	}
}
