package powercut

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"path"
)

// A Kind is what a path is.
type Kind string

// The kinds of things that a generation has.
const (
	File      Kind = "file"
	Symlink   Kind = "symlink"
	Directory Kind = "directory"
)

// A Thing is all that is looked at of a path.
type Thing struct {
	Kind     Kind
	Mode     uint32 // permission bits; not of a symlink
	UID, GID uint32
	Content  string // of a file
	Target   string // of a symlink
}

// A Tree is what a machine has in one generation, by absolute path.
type Tree struct {
	Generation uint64
	Things     map[string]Thing
}

// The numbers of a generation. Files is how many regular files there are in
// each; from one to the next, some stay as they are, as many go as come, some
// become symlinks and some symlinks become files.
const (
	Files     = 1000
	unchanged = 100
	coming    = 100 // half of them are there
	turning   = 20  // half of them are symlinks
	symlinks  = 40
	folders   = 24
)

// Of is the tree of a generation: a function of its number and of nothing else.
// Generation 0 has nothing.
func Of(generation uint64) Tree {
	t := Tree{generation, map[string]Thing{}}
	if generation == 0 {
		return t
	}
	for i := range folders {
		t.Things[folder(i)] = Thing{Kind: Directory, Mode: pick(i+int(generation), 0o755, 0o750, 0o711)}
	}
	here := func(i int) bool { return (uint64(i)+generation)%2 == 0 }
	for i := range Files - coming/2 - turning/2 {
		of := generation
		if i < unchanged {
			of = 0
		}
		p := path.Join(folder(i), fmt.Sprintf("file-%03d", i))
		t.Things[p] = fileOf(p, of, i)
	}
	for i := range coming {
		p := path.Join(folder(i), fmt.Sprintf("comes-%02d", i))
		if i%5 == 0 {
			// In directories that nobody declares: they come and go with it.
			p = fmt.Sprintf("/srv/nobody/%02d/declares/this", i)
		}
		if here(i) {
			t.Things[p] = fileOf(p, generation, i)
		}
	}
	for i := range turning {
		p := path.Join(folder(i), fmt.Sprintf("turns-%02d", i))
		t.Things[p] = fileOf(p, generation, i)
		if here(i) {
			t.Things[p] = linkOf(i, generation)
		}
	}
	for i := range symlinks {
		t.Things[path.Join(folder(i), fmt.Sprintf("link-%02d", i))] = linkOf(i, generation)
	}
	return t
}

func folder(i int) string { return fmt.Sprintf("/srv/folder-%02d", i%folders) }

func pick(n int, of ...uint32) uint32 { return of[n%len(of)] }

func linkOf(i int, generation uint64) Thing {
	return Thing{Kind: Symlink, Target: fmt.Sprintf("file-%03d-of-%d", i, generation)}
}

// fileOf is a file whose content nobody else has, of a size of its own: most
// are small, every fiftieth has several pages.
func fileOf(p string, generation uint64, i int) Thing {
	seed := sha256.Sum256(fmt.Appendf(nil, "%s of %d", p, generation))
	random := rand.NewChaCha8(seed)
	size := random.Uint64() % 600
	if i%50 == 7 {
		size += 12_000
	}
	b := make([]byte, size)
	_, _ = random.Read(b) // never fails
	n := i + int(generation)
	return Thing{
		Kind: File, Mode: pick(n, 0o644, 0o640, 0o600, 0o755, 0o444), UID: pick(n, 0, 0, 1007), GID: pick(n, 0, 33),
		Content: fmt.Sprintf("%s of %d\n%s\n", p, generation, base64.StdEncoding.EncodeToString(b)),
	}
}
