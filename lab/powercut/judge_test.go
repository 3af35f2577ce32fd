package powercut

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// mine is a thing of whoever runs the test.
func mine(t Thing) Thing {
	t.UID, t.GID = uint32(os.Getuid()), uint32(os.Getgid())
	return t
}

// lay makes the tree on an empty disk that has the host's state.
func lay(t *testing.T, tree Tree) string {
	t.Helper()
	root := t.TempDir()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.MkdirAll(filepath.Join(root, state, "host"), 0o755))
	must(os.WriteFile(filepath.Join(root, state, "host/store.db"), []byte("x"), 0o600))
	for p, thing := range tree.Things {
		at := filepath.Join(root, p)
		must(os.MkdirAll(filepath.Dir(at), 0o755))
		switch thing.Kind {
		case File:
			must(os.WriteFile(at, []byte(thing.Content), 0o600))
			must(os.Chmod(at, os.FileMode(thing.Mode)))
		case Symlink:
			must(os.Symlink(thing.Target, at))
		case Directory:
			must(os.MkdirAll(at, 0o755))
			must(os.Chmod(at, os.FileMode(thing.Mode)))
		}
	}
	return root
}

var (
	before = Tree{7, map[string]Thing{
		"/srv/a":      mine(Thing{Kind: File, Mode: 0o640, Content: "the old content"}),
		"/srv/stays":  mine(Thing{Kind: File, Mode: 0o644, Content: "as it is"}),
		"/srv/goes":   mine(Thing{Kind: File, Mode: 0o644, Content: "for a while"}),
		"/srv/link":   mine(Thing{Kind: Symlink, Target: "a"}),
		"/srv/folder": mine(Thing{Kind: Directory, Mode: 0o755}),
	}}
	after = Tree{8, map[string]Thing{
		"/srv/a":          mine(Thing{Kind: File, Mode: 0o600, Content: "the new content"}),
		"/srv/stays":      mine(Thing{Kind: File, Mode: 0o644, Content: "as it is"}),
		"/srv/in/it/come": mine(Thing{Kind: File, Mode: 0o644, Content: "from now on"}),
		"/srv/link":       mine(Thing{Kind: Symlink, Target: "stays"}),
		"/srv/folder":     mine(Thing{Kind: Directory, Mode: 0o750}),
	}}
)

func TestOldAndNewThingsAreCounted(t *testing.T) {
	for _, c := range []struct {
		name           string
		is             Tree
		may            []Tree
		old, new, same int
	}{
		{"as before", before, []Tree{before, after}, 5, 0, 1},
		{"as after", after, []Tree{before, after}, 0, 5, 1},
		{"nothing before", after, []Tree{{0, nil}, after}, 0, 5, 0},
		{"one that it may be of", after, []Tree{after}, 0, 5, 0},
		{"the middle of three", before, []Tree{{0, nil}, before, after}, 5, 0, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			v, err := Judge(lay(t, c.is), c.may...)
			if err != nil || len(v.Faults) > 0 || len(v.Leftovers) > 0 {
				t.Fatalf("%+v, %v", v, err)
			}
			if v.Old != c.old || v.New != c.new || v.Same != c.same {
				t.Errorf("%d old, %d new, %d the same; want %d, %d, %d", v.Old, v.New, v.Same, c.old, c.new, c.same)
			}
		})
	}
}

func TestWhatIsOfNoGenerationIsAFault(t *testing.T) {
	for _, c := range []struct {
		name   string
		damage func(root string) error
		says   string
	}{
		{"empty", func(root string) error { return os.Truncate(root+"/srv/a", 0) }, "/srv/a is empty"},
		{"cut off", func(root string) error { return os.Truncate(root+"/srv/a", 6) }, "6 of the 15 bytes of generation 7"},
		{"zeros at the end", func(root string) error {
			return os.WriteFile(root+"/srv/a", []byte("the new \x00\x00\x00\x00\x00\x00\x00"), 0)
		}, "8 of the 15 bytes of generation 8"},
		{"the old content in the new mode", func(root string) error { return os.Chmod(root+"/srv/a", 0o600) }, "/srv/a is of no generation"},
		{"a mode of neither", func(root string) error { return os.Chmod(root+"/srv/stays", 0o755) }, "/srv/stays is of no generation"},
		{"missing", func(root string) error { return os.Remove(root + "/srv/stays") }, "/srv/stays is missing"},
		{"a symlink that leads elsewhere", func(root string) error {
			_ = os.Remove(root + "/srv/link")
			return os.Symlink("b", root+"/srv/link")
		}, "/srv/link is of no generation"},
		{"a directory in place of a file", func(root string) error {
			_ = os.Remove(root + "/srv/a")
			return os.Mkdir(root+"/srv/a", 0o755)
		}, "/srv/a is of no generation: a directory"},
		{"a file that nobody has", func(root string) error { return os.WriteFile(root+"/srv/b", nil, 0o600) }, "/srv/b is there"},
		{"a directory that nobody has", func(root string) error { return os.Mkdir(root+"/srv/in2", 0o755) }, "/srv/in2 is there"},
		{"content under another name", func(root string) error { return os.Rename(root+"/srv/a", root+"/srv/goes") }, "/srv/goes is of no generation"},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := lay(t, before)
			if err := c.damage(root); err != nil {
				t.Fatal(err)
			}
			v, err := Judge(root, before, after)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(v.Faults, func(f string) bool { return strings.Contains(f, c.says) }) {
				t.Errorf("it says %q, not %q", v.Faults, c.says)
			}
		})
	}
}

// What one generation brings must be there when that generation is done, and
// what it takes away must be gone, with the directories made for it.
func TestADoneGenerationIsEntirelyThere(t *testing.T) {
	v, err := Judge(lay(t, before), after)
	if err != nil {
		t.Fatal(err)
	}
	if len(v.Faults) != 5 { // all but what stays
		t.Errorf("%d faults: %q", len(v.Faults), v.Faults)
	}
	root := lay(t, before)
	if err := os.MkdirAll(root+"/srv/in/it", 0o755); err != nil {
		t.Fatal(err)
	}
	if v, err := Judge(root, before, after); err != nil || len(v.Faults) > 0 {
		t.Errorf("a directory on the way to what comes: %q, %v", v.Faults, err)
	}
	if v, err := Judge(root, before); err != nil || len(v.Faults) != 2 {
		t.Errorf("directories on the way to nothing: %q, %v", v.Faults, err)
	}
}

func TestTemporaryFilesAreNoContentAndAreFoundEverywhere(t *testing.T) {
	root := lay(t, before)
	for _, p := range []string{"/srv/.nox-0011223344556677.tmp", state + "/host/.nox-store.db.tmp"} {
		if err := os.WriteFile(root+p, []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	v, err := Judge(root, before, after)
	if err != nil || len(v.Faults) > 0 || len(v.Leftovers) != 2 {
		t.Errorf("%+v, %v", v, err)
	}
}

// What the cuts are about is in the trees: each generation has the files it
// promises, and no changed file could be taken for that of another generation.
func TestGenerationsDiffer(t *testing.T) {
	for n := uint64(1); n < 4; n++ {
		files, links, same, comes, goes, turns := 0, 0, 0, 0, 0, 0
		now, next := Of(n), Of(n+1)
		for p, thing := range now.Things {
			then, ok := next.Things[p]
			switch {
			case !ok:
				goes++
			case then.Kind != thing.Kind:
				turns++
			case then == thing:
				same++
			case then.Content == thing.Content && thing.Kind == File:
				t.Errorf("%s of %d has the content of the next", p, n)
			}
			switch thing.Kind {
			case File:
				files++
				if thing.Content == "" {
					t.Errorf("%s of %d is empty by itself", p, n)
				}
			case Symlink:
				links++
			}
		}
		for p := range next.Things {
			if _, ok := now.Things[p]; !ok {
				comes++
			}
		}
		if files != Files || links != 50 || same != 100 || comes != 50 || goes != 50 || turns != 20 {
			t.Errorf("generation %d: %d files, %d links, %d the same, %d come, %d go, %d turn", n, files, links, same, comes, goes, turns)
		}
	}
}
