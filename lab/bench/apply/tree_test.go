package apply

import (
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// A tree is the files that everybody makes, below a directory that is there.
type tree struct{ files, size int }

const mode = 0o640

func (t tree) name(i int) string { return fmt.Sprintf("srv/d%03d/f%05d", i/100, i) }

// text is the content of a file, in letters that need no quotes anywhere.
func (t tree) text(i int) string {
	b := make([]byte, t.size/2)
	_, _ = rand.NewChaCha8([32]byte{byte(i), byte(i >> 8)}).Read(b)
	return hex.EncodeToString(b)
}

// folders makes the directories of the files, and nothing in them.
func (t tree) folders(b *testing.B, root string) {
	b.Helper()
	for i := 0; i < t.files; i += 100 {
		must(b, os.MkdirAll(filepath.Dir(filepath.Join(root, t.name(i))), 0o755))
	}
}

// write makes the files, for those who copy them from a directory.
func (t tree) write(b *testing.B, root string) {
	b.Helper()
	t.folders(b, root)
	for i := range t.files {
		must(b, os.WriteFile(filepath.Join(root, t.name(i)), []byte(t.text(i)), 0o600))
		must(b, os.Chmod(filepath.Join(root, t.name(i)), mode))
	}
}

// seen fails the benchmark unless every file is there as declared, and returns
// what would tell that one was written anew.
func (t tree) seen(b *testing.B, root string) []syscall.Timespec {
	b.Helper()
	out := make([]syscall.Timespec, t.files)
	for i := range t.files {
		p := filepath.Join(root, t.name(i))
		fi, err := os.Lstat(p)
		must(b, err)
		have, err := os.ReadFile(p)
		must(b, err)
		if fi.Mode() != mode || string(have) != t.text(i) {
			b.Fatalf("%s is %v with %d bytes, and not as declared", p, fi.Mode(), len(have))
		}
		out[i] = fi.Sys().(*syscall.Stat_t).Ctim
	}
	return out
}

// edit changes a file so that only a look at its content tells.
func (t tree) edit(b *testing.B, root string, i int) {
	b.Helper()
	p := filepath.Join(root, t.name(i))
	fi, err := os.Stat(p)
	must(b, err)
	f, err := os.OpenFile(p, os.O_WRONLY, 0)
	must(b, err)
	_, err = f.WriteAt([]byte("X"), int64(t.size/2))
	must(b, err)
	must(b, f.Close())
	must(b, os.Chtimes(p, fi.ModTime(), fi.ModTime()))
}

func must(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}
