package place

import (
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// acl is an access list, as acl(5) keeps it: read and search for the user 1234.
var acl = []byte{2, 0, 0, 0,
	1, 0, 7, 0, 255, 255, 255, 255, // the owner
	2, 0, 5, 0, 0xd2, 4, 0, 0,
	4, 0, 5, 0, 255, 255, 255, 255, // the group
	16, 0, 5, 0, 255, 255, 255, 255, // the mask
	32, 0, 0, 0, 255, 255, 255, 255} // others

func give(t *testing.T, path, name string, value []byte) {
	t.Helper()
	err := unix.Setxattr(path, name, value, 0)
	if errors.Is(err, unix.EOPNOTSUPP) {
		t.Skipf("this file system keeps no %q", name)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func given(t *testing.T, path string) (all []string) {
	t.Helper()
	b := make([]byte, 4096)
	for _, name := range []string{"user.note", "user.empty", "system.posix_acl_access", "system.posix_acl_default"} {
		switch n, err := unix.Getxattr(path, name, b); {
		case err == nil:
			all = append(all, name+"="+string(b[:n]))
		case !errors.Is(err, unix.ENODATA):
			t.Fatal(err)
		}
	}
	return all
}

// TestAttributesAreKept: what people gave the directory, they gave its name.
func TestAttributesAreKept(t *testing.T) {
	p := at(t)
	lay(t, filepath.Dir(p.Path), map[string]string{"d/old": ""})
	give(t, p.Path, "user.note", []byte("served by the mirror"))
	give(t, p.Path, "user.empty", nil)
	give(t, p.Path, "system.posix_acl_access", acl)
	want := []string{"user.note=served by the mirror", "user.empty=", "system.posix_acl_access=" + string(acl)}
	if got := given(t, p.Path); !slices.Equal(got, want) {
		t.Fatalf("%q, so this tests nothing", got)
	}
	// What the parent gives to all that is made in it is not what it had.
	give(t, filepath.Dir(p.Path), "system.posix_acl_default", acl)
	for range 2 {
		if err := replace(p); err != nil {
			t.Fatal(err)
		}
		if got := given(t, p.Path); !slices.Equal(got, want) {
			t.Errorf("%q", got)
		}
	}
	var st unix.Stat_t
	if err := unix.Stat(p.Path, &st); err != nil || st.Mode&0o7777 != 0o750 {
		t.Errorf("mode %o, %v", st.Mode&0o7777, err)
	}
}
