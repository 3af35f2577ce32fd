package file

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// vfatVariable names a folder on a vfat that is mounted with umask=022. Few
// computers that run tests have one: lab/powercut has a machine with a kernel that
// does, and runs this there.
const vfatVariable = "NOX_FILE_TEST_VFAT"

// vfat keeps no owner, no mode but one bit, no symlinks and no second names.
func TestF04VFATKeepsTheOldFileOrTheNewAndSaysWhatItCannot(t *testing.T) {
	dir := os.Getenv(vfatVariable)
	if dir == "" {
		t.Skip("not on a vfat: lab/powercut runs this on a machine that has one")
	}
	root := filepath.Join(dir, "root")
	if err := os.MkdirAll(root, 0o755); err != nil {
		t.Fatal(err)
	}
	b := benchAt(t, root, filepath.Join(t.TempDir(), "content"))

	// What it can keep is written, and written once.
	w := want(t, `{"path":"/etc/it","content":"one","mode":"0755"}`)
	rec := b.apply(w, nil)
	b.text("/etc/it", "one")
	if st := b.check(w, &rec); !st.Same {
		t.Errorf("%+v", st)
	}
	two := want(t, `{"path":"/etc/it","content":"two","mode":"0755"}`)
	rec = b.apply(two, &rec)
	b.text("/etc/it", "two")
	b.apply(want(t, `{"path":"/etc/made/for/it","content":"x","mode":"0755"}`), nil)
	b.text("/etc/made/for/it", "x")

	// What it cannot keep is said, and the old file stays.
	for spec, says := range map[string]string{
		`{"path":"/etc/it","content":"new","mode":"0644"}`:                   "chmod: operation not permitted: the file system may keep no owner or mode",
		`{"path":"/etc/it","content":"new","mode":"0755","owner":"1000"}`:    "chown: operation not permitted: the file system may keep no owner or mode",
		`{"path":"/etc/it","target":"/etc/passwd"}`:                          "operation not permitted",
		`{"path":"/etc/link","target":"/etc/passwd"}`:                        "operation not permitted",
		`{"path":"/etc/a:b","content":"new","mode":"0755"}`:                  "invalid argument",
		`{"path":"/etc/private","directory":true,"mode":"0755","group":"7"}`: "operation not permitted",
	} {
		w := want(t, spec)
		st, err := b.try(w, nil)
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", spec, err, says)
		}
		if st.Same {
			t.Errorf("%s: it is called as declared", spec)
		}
		b.text("/etc/it", "two")
		left, _ := filepath.Glob(b.path("/etc/.nox-*"))
		if len(left) > 0 {
			t.Errorf("%s: left is %q", spec, left)
		}
	}

	// A second name for what somebody made of it is a new name.
	b.must(os.WriteFile(b.path("/etc/it"), []byte("theirs"), 0o755))
	b.remove(rec, "removed", `"it.nox-saved"`)
	b.text("/etc/it.nox-saved", "theirs")
	if _, err := os.Lstat(b.path("/etc/it")); !os.IsNotExist(err) {
		t.Errorf("it is still there: %v", err)
	}
}
