package keys

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Seen returns the files of private keys in dir that others may read. Their
// passphrase is then all that keeps the keys, which is enough for as long as nobody
// tries to guess it; so who signs is warned. What others may write is refused
// when it is opened (guard.Own): they could put a key of theirs in its place.
func Seen(dir string) []string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil // whoever opens the keys says so
	}
	var out []string
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".key") && !strings.HasSuffix(e.Name(), PackageSecret) {
			continue
		}
		path := filepath.Join(dir, e.Name())
		fi, err := os.Stat(path)
		if err != nil || !fi.Mode().IsRegular() {
			continue
		}
		others := fs.FileMode(0o044)
		if st, ok := fi.Sys().(*syscall.Stat_t); ok && st.Uid != 0 && st.Gid == st.Uid {
			others = 0o004 // the group of an ordinary user alone, as guard.Own has it
		}
		if fi.Mode().Perm()&others != 0 {
			out = append(out, path)
		}
	}
	return out
}
