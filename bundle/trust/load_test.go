package trust

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

func TestLoadDirRefusesWhatOthersMayWrite(t *testing.T) {
	chown := func(p string) error { return os.Lchown(p, 1000, 1000) }
	for _, c := range []struct {
		what, path string
		change     func(string) error
		say        string
	}{
		{"all may write the directory", "", func(p string) error { return os.Chmod(p, 0o777) }, "written by others"},
		{"all may add to the directory", "", func(p string) error { return os.Chmod(p, 0o777|os.ModeSticky) }, "written by others"},
		{"all may write a key", "release.pub", func(p string) error { return os.Chmod(p, 0o666) }, "written by others"},
		{"all may write a root", "1.root.json", func(p string) error { return os.Chmod(p, 0o646) }, "written by others"},
		{"the directory is somebody's", "", chown, "uid 1000"},
		{"a key is somebody's", "release.pub", chown, "uid 1000"},
		{"a root is somebody's", "1.root.json", chown, "uid 1000"},
		{"a link to the directory is somebody's", "", func(p string) error {
			if err := os.Rename(p, p+".real"); err != nil {
				return err
			}
			if err := os.Symlink(p+".real", p); err != nil {
				return err
			}
			return chown(p)
		}, "uid 1000"},
		{"it is nobody else's", "", func(p string) error { return os.Chmod(p, 0o755) }, ""},
		{"a secret of somebody's is passed over", "root.key", chown, ""},
	} {
		t.Run(c.what, func(t *testing.T) {
			if os.Geteuid() != 0 && (c.say == "uid 1000" || c.path == "root.key") {
				t.Skip("only root can give a file away")
			}
			dir := filepath.Join(t.TempDir(), "trust")
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			files, _ := chain(t, 1)
			write(t, dir, "1.root.json", files[0])
			write(t, dir, "release.pub", []byte(key(t, newKey(t)).Public))
			write(t, dir, "root.key", []byte("secret"))
			if err := c.change(filepath.Join(dir, c.path)); err != nil {
				t.Fatal(err)
			}
			_, err := LoadDir(dir)
			if c.say == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if fault.KindOf(err) != fault.Refused || !strings.Contains(err.Error(), c.say) || fault.RemedyOf(err) == "" {
				t.Errorf("%v (%s)", err, fault.RemedyOf(err))
			}
		})
	}
}
