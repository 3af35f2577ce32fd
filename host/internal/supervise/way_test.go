package supervise

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestWayIsThatOfWhoMayLead(t *testing.T) {
	for name, c := range map[string]struct {
		make func(root string) error
		want string // where it leads, below the root
		why  string
	}{
		"plain":       {func(string) error { return nil }, "usr/bin", ""},
		"a symlink":   {func(r string) error { return os.Symlink("usr", filepath.Join(r, "a")) }, "usr/bin", ""},
		"an absolute": {func(r string) error { return os.Symlink("/usr", filepath.Join(r, "a")) }, "usr/bin", ""},
		"out of it":   {func(r string) error { return os.Symlink("../../../../usr", filepath.Join(r, "a")) }, "usr/bin", ""},
		"a circle":    {func(r string) error { return os.Symlink("a", filepath.Join(r, "a")) }, "", "too many levels"},
		"a user's": {func(r string) error {
			if err := os.Symlink("usr", filepath.Join(r, "a")); err != nil {
				return err
			}
			return os.Lchown(filepath.Join(r, "a"), 4711, 4711)
		}, "", "is not root's alone"},
		"where others may write": {func(r string) error {
			if err := os.Symlink("usr", filepath.Join(r, "a")); err != nil {
				return err
			}
			return os.Chmod(r, 0o777)
		}, "", "is not root's alone"},
		"a file": {func(r string) error { return os.WriteFile(filepath.Join(r, "a"), nil, 0o600) }, "", "not a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			if err := os.MkdirAll(filepath.Join(root, "usr/bin"), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := c.make(root); os.IsPermission(err) {
				t.Skip("only root gives a file away")
			} else if err != nil {
				t.Fatal(err)
			}
			way := "/a/bin"
			if name == "plain" {
				way = "/usr/./bin"
			}
			d, err := openWay(root, way)
			if err != nil {
				if c.why == "" || !strings.Contains(err.Error(), c.why) {
					t.Errorf("%v, want %q", err, c.why)
				}
				return
			}
			defer d.Close()
			got, err := d.Stat(".")
			want, werr := os.Stat(filepath.Join(root, c.want))
			if c.why != "" || err != nil || werr != nil || !os.SameFile(got, want) {
				t.Errorf("it leads to %v, %v, %v; want %q", got, err, werr, c.want)
			}
		})
	}
}
