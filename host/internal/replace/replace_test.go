package replace

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
)

// bench is a binary that runs: what the kernel holds open is a second name of
// the same file, as /proc/self/exe is.
func bench(t *testing.T) (w *Watch, path string) {
	t.Helper()
	return benchOf(t, Config{})
}

func benchOf(t *testing.T, c Config) (w *Watch, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "host")
	write(t, path, "version 1")
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	w, err = watch(path, filepath.Join("/proc/self/fd", fd(f)), c)
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

func TestS03UnchangedIsNotReplaced(t *testing.T) {
	w, path := bench(t)
	want(t, w, false)
	if err := os.Chtimes(path, time.Unix(1, 0), time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	want(t, w, false)
}

func TestS03TheSameContentInAnotherInodeIsNotReplaced(t *testing.T) {
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

func TestAHostThatIsInstalledElsewhereGoesOnFromThere(t *testing.T) {
	other := filepath.Join(t.TempDir(), "host")
	w, path := benchOf(t, Config{Elsewhere: []string{other}})
	write(t, other, "version 1")
	want(t, w, false) // both are there
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	want(t, w, true)
}

func TestAHostThatRunsForWantOfAnotherWaitsForSomethingNew(t *testing.T) {
	installed := filepath.Join(t.TempDir(), "host")
	bad := digest.FromString("version 2")
	w, _ := benchOf(t, Config{Given: installed, Elsewhere: []string{os.Args[0]}, Refused: func() digest.Digest { return bad }})
	if !w.Stands() || w.Path() != installed {
		t.Errorf("stands: %v, path %q", w.Stands(), w.Path())
	}
	want(t, w, false) // there is nothing, and that it is installed elsewhere does not help
	write(t, installed, "version 2")
	want(t, w, false)
	if sum, err := w.Installed(); err != nil || sum != bad {
		t.Errorf("installed: %s, %v", sum, err)
	}
	write(t, installed, "version 1")
	want(t, w, false)
	write(t, installed, "version 3")
	want(t, w, true)
}

func TestWhatFailedHereIsNoReplacement(t *testing.T) {
	refused := digest.FromString("version 2")
	w, path := benchOf(t, Config{Refused: func() digest.Digest { return refused }})
	write(t, path, "version 2")
	want(t, w, false)
	refused = ""
	want(t, w, true)
}
