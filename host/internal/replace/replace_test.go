package replace

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// bench is a binary that runs: what the kernel holds open is a second name of
// the same file, as /proc/self/exe is.
func bench(t *testing.T) (w *Watch, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "host")
	write(t, path, "version 1")
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	w, err = watch(path, filepath.Join("/proc/self/fd", fd(f)))
	if err != nil {
		t.Fatal(err)
	}
	return w, path
}

func fd(f *os.File) string { return strconv.Itoa(int(f.Fd())) }

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path+".new", []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

func want(t *testing.T, w *Watch, replaced bool) {
	t.Helper()
	if got, err := w.Replaced(); err != nil || got != replaced {
		t.Errorf("replaced: %v, %v; want %v", got, err, replaced)
	}
}

func TestUnchangedIsNotReplaced(t *testing.T) {
	w, path := bench(t)
	want(t, w, false)
	if err := os.Chtimes(path, time.Unix(1, 0), time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	want(t, w, false)
}

func TestTheSameContentInAnotherInodeIsNotReplaced(t *testing.T) {
	w, path := bench(t)
	write(t, path, "version 1")
	want(t, w, false)
	want(t, w, false)
	write(t, path, "version 2")
	want(t, w, true)
}

func TestEveryWayToReplaceIsSeen(t *testing.T) {
	for name, replace := range map[string]func(path string){
		"rename over": func(path string) { write(t, path, "version 2") },
		"unlink and create": func(path string) {
			_ = os.Remove(path)
			_ = os.WriteFile(path, []byte("version 2"), 0o755)
		},
		"renamed aside": func(path string) {
			_ = os.Rename(path, path+".old")
			_ = os.WriteFile(path, []byte("version 2"), 0o755)
		},
		"a symlink": func(path string) {
			_ = os.WriteFile(path+".2", []byte("version 2"), 0o755)
			_ = os.Remove(path)
			_ = os.Symlink(path+".2", path)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, path := bench(t)
			replace(path)
			want(t, w, true)
		})
	}
}

func TestABinaryThatIsGoneIsNotReplaced(t *testing.T) {
	w, path := bench(t)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	want(t, w, false)
	write(t, path, "version 2")
	want(t, w, true)
}
