package account

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/nox-mesh/nox-mesh/internal/layout"
)

func TestAccountsOfARoot(t *testing.T) {
	l := layout.Layout{Root: t.TempDir()}
	if _, err := UID(l, "web"); !errors.Is(err, ErrUnknown) {
		t.Errorf("without a table: %v", err)
	}
	etc := filepath.Join(l.Root, "etc")
	for _, err := range []error{
		os.Mkdir(etc, 0o755),
		os.WriteFile(filepath.Join(etc, "passwd"), []byte("garbage\nroot:x:0:0:root:/root:/bin/sh\nweb:x:33:44:web:/srv:/bin/false\nweb:x:99:99::/:/x\n"), 0o644),
		os.WriteFile(filepath.Join(etc, "group"), []byte("www:x:44:\nssl:x:70:root,web\nadm:x:4:web\n"), 0o644),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]int{"web": 33, "33": 33, "12345": 12345, "root": 0} {
		if n, err := UID(l, name); n != want || err != nil {
			t.Errorf("user %s: %d, %v", name, n, err)
		}
	}
	if n, err := GID(l, "www"); n != 44 || err != nil {
		t.Errorf("group www: %d, %v", n, err)
	}
	if _, err := GID(l, "web"); !errors.Is(err, ErrUnknown) {
		t.Errorf("group web: %v", err)
	}
	for name, want := range map[string]User{
		"web": {33, 44, []uint32{4, 70}}, "33": {33, 44, []uint32{4, 70}}, "842": {UID: 842, GID: 842}, "root": {}, "0": {},
	} {
		if u, err := Lookup(l, name); err != nil || !reflect.DeepEqual(u, want) {
			t.Errorf("%s runs as %+v, %v; want %+v", name, u, err, want)
		}
	}
	if _, err := Lookup(l, "nobody"); !errors.Is(err, ErrUnknown) {
		t.Errorf("nobody: %v", err)
	}
}

func TestTheTableIsTheRootsOwn(t *testing.T) {
	l := layout.Layout{Root: t.TempDir()}
	outside := filepath.Join(t.TempDir(), "passwd")
	for _, err := range []error{
		os.WriteFile(outside, []byte("evil:x:1:1::/:/\n"), 0o644),
		os.Mkdir(filepath.Join(l.Root, "etc"), 0o755),
		os.Symlink(outside, filepath.Join(l.Root, "etc/passwd")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := UID(l, "evil"); !errors.Is(err, ErrUnknown) {
		t.Errorf("a link out of the root was followed: %v", err)
	}
}
