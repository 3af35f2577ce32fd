package guard

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

func TestWayRefusesWhatOthersMayWrite(t *testing.T) {
	for _, c := range []struct {
		what    string
		prepare func(t *testing.T, root string)
		say     string // "" is accepted
		asRoot  bool
	}{
		{what: "all is mine"},
		{what: "nothing is there", prepare: func(t *testing.T, root string) { must(t, os.RemoveAll(filepath.Join(root, "a"))) }},
		{what: "others may write the root", say: "written by others", prepare: func(t *testing.T, root string) { must(t, os.Chmod(root, 0o757)) }},
		{what: "others may write a parent", say: "written by others", prepare: func(t *testing.T, root string) { must(t, os.Chmod(filepath.Join(root, "a"), 0o757)) }},
		{what: "others may write it", say: "written by others", prepare: func(t *testing.T, root string) { must(t, os.Chmod(filepath.Join(root, "a/b"), 0o757)) }},
		{what: "sticky is not enough", say: "written by others", prepare: func(t *testing.T, root string) {
			must(t, os.Chmod(filepath.Join(root, "a"), 0o777|os.ModeSticky))
		}},
		{what: "a link into a place that others may write", say: "other", prepare: func(t *testing.T, root string) {
			must(t, os.Mkdir(filepath.Join(root, "other"), 0o700))
			must(t, os.Chmod(filepath.Join(root, "other"), 0o707))
			must(t, os.Remove(filepath.Join(root, "a/b")))
			must(t, os.Symlink("../other", filepath.Join(root, "a/b")))
		}},
		{what: "a link to where it is safe", prepare: func(t *testing.T, root string) {
			must(t, os.Mkdir(filepath.Join(root, "other"), 0o700))
			must(t, os.Remove(filepath.Join(root, "a/b")))
			must(t, os.Symlink("../other", filepath.Join(root, "a/b")))
		}},
		{what: "a loop", say: "loop", prepare: func(t *testing.T, root string) {
			must(t, os.Remove(filepath.Join(root, "a/b")))
			must(t, os.Symlink("b", filepath.Join(root, "a/b")))
		}},
		{what: "somebody else's parent", say: "belongs to uid 1000", asRoot: true, prepare: func(t *testing.T, root string) {
			must(t, os.Chown(filepath.Join(root, "a"), 1000, 1000))
		}},
		{what: "somebody else's link", say: "belongs to uid 1000", asRoot: true, prepare: func(t *testing.T, root string) {
			must(t, os.Rename(filepath.Join(root, "a/b"), filepath.Join(root, "c")))
			must(t, os.Symlink("../c", filepath.Join(root, "a/b")))
			must(t, os.Lchown(filepath.Join(root, "a/b"), 1000, 1000))
		}},
		{what: "root's own group may not either", say: "written by others", asRoot: true, prepare: func(t *testing.T, root string) {
			must(t, os.Chmod(filepath.Join(root, "a"), 0o775))
		}},
	} {
		t.Run(c.what, func(t *testing.T) {
			if c.asRoot && os.Geteuid() != 0 {
				t.Skip("only root can give a file away")
			}
			root := filepath.Join(t.TempDir(), "root")
			must(t, os.MkdirAll(filepath.Join(root, "a/b"), 0o755))
			if c.prepare != nil {
				c.prepare(t, root)
			}
			err := Way(root, filepath.Join(root, "a/b/not/there"))
			if c.say == "" {
				must(t, err)
				return
			}
			if fault.KindOf(err) != fault.Refused || !strings.Contains(err.Error(), c.say) {
				t.Errorf("%v", err)
			}
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
