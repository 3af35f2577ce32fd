package publisher

import (
	"os"
	"testing"
)

// TestBuildIntoAUsedDirectory: the same release again, the next one, a failed one,
// and what is not ours.
func TestBuildIntoAUsedDirectory(t *testing.T) {
	d := newDesk(t)
	for _, version := range []string{one, one, two, one} {
		d.ok(build("dist", version)...)
		if got := d.holds("again", "dist"); got != version {
			t.Errorf("after %s it holds %q", version, got)
		}
		d.ok("verify", "--trust", "keys", "dist")
	}
	// What fails leaves the old one.
	license := d.tree("src")["LICENSE"]
	must(t, os.Remove(d.path("src/LICENSE")))
	d.fault("no licence", d.mesh(build("dist", two)...), 1, "LICENSE: no such file")
	if got := d.holds("a failed build", "dist"); got != one {
		t.Errorf("it holds %q", got)
	}
	d.put("src/LICENSE", license)
	d.tidy("a used directory", d.dir)
	// Of strangers.
	for name, found := range map[string]string{
		"notes": "notes", "arch/notes": "arch/notes", "arch/x86_64/notes": "arch/x86_64/notes", ".hidden": ".hidden",
		"arch/aarch64/web-1-1-aarch64.pkg.tar.zst": "arch/aarch64", "nox-mesh-host-0.9.0-linux-x86_64.tar.gz": "nox-mesh-host-0.9.0-linux-x86_64.tar.gz",
	} {
		path := d.put("dist/"+name, "mine")
		d.fault(name, d.mesh(build("dist", two)...), 3, `"`+found+`" is in it, and no file of a release; move it elsewhere, or give another --out`)
		must(t, os.Remove(path)) // it is still there
		if found != name {
			must(t, os.Remove(d.path("dist/"+found)))
		}
		if got := d.holds(name, "dist"); got != one {
			t.Errorf("%s: it holds %q", name, got)
		}
	}
	d.put("folder/notes", "mine")
	d.fault("no release", d.mesh(build("folder", one)...), 3, `"notes" is in it`)
	must(t, os.Remove(d.path("dist/release.json")))
	d.fault("release.json is gone", d.mesh(build("dist", one)...), 3, "; move it elsewhere, or give another --out")
}

// TestOutIsNoDirectory: a file, a symlink, the directory one is in.
func TestOutIsNoDirectory(t *testing.T) {
	d := newDesk(t)
	d.put("file", "mine")
	d.fault("a file", d.mesh(build("file", one)...), 3, "is there, and no directory; give another name")
	d.fault("below a file", d.mesh(build("file/o", one)...), 1, "not a directory")
	if b, err := os.ReadFile(d.path("file")); string(b) != "mine" {
		t.Errorf("the file is %q, %v", b, err)
	}
	must(t, os.Symlink("nowhere", d.path("dangling")))
	d.fault("a dangling link", d.mesh(build("dangling", one)...), 3, "is a symlink, and what it leads to is not there; make the directory")
	must(t, os.Mkdir(d.path("real"), 0o755))
	must(t, os.Symlink("real", d.path("link")))
	d.ok(build("link", one)...)
	if to, err := os.Readlink(d.path("link")); to != "real" || d.holds("through a link", "real") != one {
		t.Errorf("the link leads to %q, %v", to, err)
	}
	d.fault("no name", d.mesh(build("", one)...), 2, "; give --out DIR")
	here := append([]string{"-c", `mkdir here && cd here && exec "$0" "$@"`, shared.program}, build(".", one, "--source", "../src", "--keys", "../keys")...)
	d.fault("here", d.command(t.Context(), "sh", here...), 2, "cannot replace the directory you are in; go one up and name it")
	d.tidy("no directory", d.dir)
}

// TestEmptyFoldersOfStrangersStay: what we did not make is not removed, be it empty.
func TestEmptyFoldersOfStrangersStay(t *testing.T) {
	d := newDesk(t)
	must(t, os.MkdirAll(d.path("o/mine"), 0o755))
	d.fault("an empty folder", d.mesh(build("o", one)...), 3, `"mine" is in it`)
}

// TestAStrangersFileIsFoundBeforeTheCompilerRuns: a person waits for minutes else.
func TestAStrangersFileIsFoundBeforeTheCompilerRuns(t *testing.T) {
	d := newDesk(t)
	d.put("o/notes", "mine")
	must(t, os.Remove(d.path("src/host/cmd/mesh-host/main.go")))
	d.fault("foreign and does not compile", d.mesh(build("o", one)...), 3, `"notes" is in it`)
}
