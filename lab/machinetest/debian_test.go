//go:build machine

package machinetest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// debianRepository makes a package of the files, control file and scripts among
// them, and returns a folder that is a repository of it.
func debianRepository(t *testing.T, name string, files map[string]string) string {
	t.Helper()
	dir, repo := t.TempDir(), t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, line := range []string{
		"dpkg-deb --root-owner-group -b " + dir + " " + repo + "/" + name + ".deb >/dev/null",
		"cd " + repo + " && dpkg-scanpackages -m . > Packages 2>/dev/null",
	} {
		if out, err := exec.Command("sh", "-c", line).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", line, err, out)
		}
	}
	return repo
}
