package profile

import (
	"os"
	"testing"

	"github.com/nox-mesh/nox-mesh/internal/layout"
)

func TestAMountIsFoundByTheLongestName(t *testing.T) {
	mounts := parseMounts([]byte(`1 0 8:1 / / rw - ext4 /dev/sda1 rw
2 1 8:2 / /var rw - xfs /dev/sda2 rw
3 1 8:3 / /variable rw - xfs /dev/sda3 rw
4 2 8:4 / /var/a\040b\134c ro,relatime shared:1 master:2 - ext4 /dev/sda4 rw
5 1 0:9 / /mnt rw - nfs4 server:/x rw,vers=4.2
6 1 0:9 / /mnt rw - tmpfs tmpfs ro,size=4k
garbage
7 1
8 x - y z
`))
	s := quiet(layout.Layout{Root: "/image"})
	for path, want := range map[string]struct {
		id uint64
		ro bool
	}{
		"/image": {1, false}, "/image/var": {2, false}, "/image/var/lib": {2, false}, "/image/variable/x": {3, false}, "/image/varia": {1, false},
		"/image/var/a b\\c/d": {4, true}, "/image/mnt/x": {6, true}, // the later lies over the earlier
	} {
		if m := s.mountOf(path, mounts); m == nil || m.id != want.id || m.readOnly != want.ro {
			t.Errorf("%s: %+v", path, m)
		}
	}
	if len(mounts) != 6 {
		t.Errorf("%+v", mounts)
	}
}

// TestASymlinkLeadsToAnotherFileSystem, and what is not there yet will be on that
// of the folder it will be in.
func TestASymlinkLeadsToAnotherFileSystem(t *testing.T) {
	l := tree(t, map[string]string{
		"/data/var/": "", "/usr/": "",
		"/proc/self/mountinfo": "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 8:2 / /data rw - xfs /dev/sdb1 rw\n",
	})
	if err := os.Symlink("data/var", l.Path("/var")); err != nil {
		t.Fatal(err)
	}
	got, err := quiet(l).fileSystems()
	if err != nil || len(got) != 2 || got[1].Mount != "/data" || got[1].Type != "xfs" || len(got[1].Holds) != 2 || got[1].Holds[1] != "/var/lib/nox-mesh" {
		t.Errorf("%+v, %v", got, err)
	}
}

func FuzzMounts(f *testing.F) {
	f.Add([]byte("4 2 8:4 / /var/a\\040b ro shared:1 - ext4 /dev/sda4 rw\n"))
	f.Add([]byte("4 2 8:4 / \\99\\0 ro - - \n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, m := range parseMounts(b) {
			if len(m.point) > len(b) {
				t.Fatalf("%q", m.point)
			}
		}
	})
}
