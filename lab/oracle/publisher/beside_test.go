package publisher

import (
	"os"
	"testing"
)

// TestAStrangersFolderBesideIsLeft: it has the name of the folder that a release is
// made in, and nothing else of one. That is said before the compiler runs.
func TestAStrangersFolderBesideIsLeft(t *testing.T) {
	d := newDesk(t)
	path := d.put(".o.next/thesis", "mine")
	must(t, os.Remove(d.path("src/host/cmd/mesh-host/main.go")))
	d.fault("a stranger's folder", d.mesh(build("o", one)...), 3,
		`/.o.next" is in the way: mesh-release did not make it; look at what it holds, and move it elsewhere`)
	if b, err := os.ReadFile(path); string(b) != "mine" {
		t.Errorf("it holds %q, %v", b, err)
	}
}

// TestAListOfStrangersFilesRemovesNone: whoever writes a release.json does not say
// what is removed.
func TestAListOfStrangersFilesRemovesNone(t *testing.T) {
	d := newDesk(t)
	path := d.put("o/thesis", "mine")
	d.put("o/release.json", `{
  "schema": 1,
  "version": "1.0.0",
  "channel": "stable",
  "counter": 1,
  "go": "",
  "compressor": "",
  "files": [
    {
      "name": "thesis",
      "size": 4,
      "sha256": "3fd30542fe3f61b14bd4a4b2dc0b6fb30fa6f63ebce52dd1778aaa8c4dc02cff"
    }
  ]
}
`)
	d.fault("a crafted list", d.mesh(build("o", one)...), 3, "it holds no release of ours: ")
	if b, err := os.ReadFile(path); string(b) != "mine" {
		t.Errorf("it holds %q, %v", b, err)
	}
}
