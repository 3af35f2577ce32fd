package place

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nox-mesh/nox-mesh/internal/durable"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// mounted binds something with a file in it to what is at path,
// for the time of the test.
func mounted(t *testing.T, path string) (home string) {
	t.Helper()
	home = t.TempDir()
	lay(t, home, map[string]string{"thesis": "mine"})
	if err := unix.Mount(home, path, "", unix.MS_BIND, ""); err != nil {
		if os.Getenv("NOX_REQUIRE_MACHINE") == "1" {
			t.Fatal(err)
		}
		t.Skipf("nothing can be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(path, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil {
			t.Error(err)
		}
	})
	return home
}

// TestWhatIsMountedBelowIsLeft: a directory that has a mount point in it would be
// moved aside with it, and what is mounted there be removed.
func TestWhatIsMountedBelowIsLeft(t *testing.T) {
	for what, where := range map[string]string{
		"in the directory":         "d/arch/x86_64",
		"in what a kill left":      ".d.next/directory/arch",
		"in the place of the left": ".d.next/directory",
	} {
		t.Run(what, func(t *testing.T) {
			p := at(t)
			top := filepath.Dir(p.Path)
			lay(t, top, map[string]string{"d/old": "old", ".d.next/" + mark: markText, where + "/": ""})
			home := mounted(t, filepath.Join(top, where))
			before := listed(t, top)
			for _, err := range []error{p.Check(), replace(p)} {
				if fault.KindOf(err) != fault.Refused || !strings.Contains(err.Error(), `/`+where+`" is a mount point`) || fault.RemedyOf(err) == "" {
					t.Errorf("%v", err)
				}
			}
			if after := listed(t, top); len(after) != len(before) {
				t.Errorf("there is %v, there was %v", after, before)
			}
			if b, err := os.ReadFile(home + "/thesis"); err != nil || string(b) != "mine" {
				t.Errorf("%q, %v", b, err)
			}
		})
	}
}

// TestWhatIsMountedMeanwhileIsLeft: it comes while the new directory is filled.
func TestWhatIsMountedMeanwhileIsLeft(t *testing.T) {
	p := at(t)
	lay(t, filepath.Dir(p.Path), map[string]string{"d/sub/": ""})
	if err := p.Begin(); err != nil {
		t.Fatal(err)
	}
	home := ""
	err := p.Replace(func(*durable.Dir) error {
		home = mounted(t, p.Path+"/sub")
		return nil
	})
	if fault.KindOf(err) != fault.Refused || !strings.Contains(err.Error(), `/d/sub" is a mount point`) {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(home + "/thesis"); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(filepath.Dir(p.Path)); err != nil || len(left) != 1 {
		t.Errorf("left beside it: %v, %v", left, err)
	}
}
