package publisher

import (
	"strings"
	"testing"
)

// verbs are all commands of mesh-release.
var verbs = []string{
	"", "keys", "keys init", "keys show", "keys rotate", "keys promote", "keys revoke", "keys export", "build", "pack", "rebuild",
	"repo", "repo add", "repo remove", "repo publish", "repo list", "bundle", "bundle create", "bundle inspect", "sign", "verify",
}

// TestEveryVerbHasAnExample, and an unknown flag is wrong usage that says where to
// look.
func TestEveryVerbHasAnExample(t *testing.T) {
	d := newDesk(t)
	for _, verb := range verbs {
		words := strings.Fields(verb)
		if out := d.ok(append(words, "--help")...); !strings.Contains(out, "\nExamples:\n  mesh-release "+verb) {
			t.Errorf("%q has no example", verb)
		}
		d.fault(verb, d.mesh(append(words, "--nosuch")...), 2, "there is no flag --nosuch; see mesh-release")
	}
}

// TestCommonMistakes: nothing given, nothing there, a directory for a file and a
// file for a directory.
func TestCommonMistakes(t *testing.T) {
	d := newDesk(t)
	d.put("file", "x\n")
	d.put("folder/file", "x\n")
	for _, c := range []struct {
		line string
		code int
		says string
	}{
		{"nosuch", 2, "; see mesh-release --help"},
		{"keys init", 2, "; see mesh-release keys init --help"},
		{"keys init file", 1, "not a directory"},
		{"keys init keys", 3, "is there already; choose an empty directory"},
		{"keys show", 2, "; see"},
		{"keys show none", 1, `; make keys with "mesh-release keys init none"`},
		{"keys show folder", 1, `; make keys with "mesh-release keys init folder"`},
		{"keys show file", 1, "not a directory"},
		{"keys rotate keys", 2, "; give --release, --package or --root"},
		{"keys rotate none --release", 1, `; make keys with "mesh-release keys init none"`},
		{"keys promote none", 1, `; make keys with "mesh-release keys init none"`},
		{"keys promote keys", 3, "none was announced; run"},
		{"keys revoke keys", 2, "; see"},
		{"keys revoke keys 00", 3, "does not name it"},
		{"keys export keys", 2, "; give --out DIR"},
		{"keys export none --out e", 1, "; make keys with"},
		{"keys export keys --out file", 1, "not a directory"},
		{"sign", 2, "; see"},
		{"sign file", 2, "; give --keys DIR"},
		{"sign --keys keys none", 1, "none: no such file"},
		{"sign --keys keys folder", 3, "is not a regular file"},
		{"verify", 2, "; see"},
		{"verify file", 2, "; give --trust DIR"},
		{"verify --trust none file", 1, `none: no such file or directory; give the directory that "mesh-release keys export" makes`},
		{"verify --trust file file", 1, "not a directory"},
		{"verify --trust folder file", 3, "nothing to trust; put a release root"},
		{"verify --trust keys none", 1, "none: no such file or directory; give the directory of a release, or files of one"},
		{"verify --trust keys file none", 1, "none: no such file or directory; give"},
		{"verify --trust keys file", 3, `there is no "file.sigstore.json"`},
		{"verify --trust keys folder", 3, "no finished release"},
		{"bundle create", 2, "; see"},
		{"bundle create none --keys keys --counter 1 --out o", 1, "none: no such file"},
		{"bundle create folder --keys keys --counter 1 --out o", 1, "is not a regular file"},
		{"bundle create file --keys keys --counter 1 --out o", 3, "line 1"},
		{"bundle create file --keys keys --counter 1", 2, "--out and --counter are needed"},
		{"bundle create file --keys keys --counter 1 --out o --file x", 2, "is not TITLE=PATH"},
		{"bundle inspect", 2, "; see"},
		{"bundle inspect file", 2, "; give --trust DIR"},
		{"bundle inspect --trust keys none", 1, `"none": no such file`},
		{"bundle inspect --trust keys folder", 1, "directory"},
		{"bundle inspect --trust keys file", 3, "; copy or download the file again"},
		{"repo add r", 2, "; see"},
		{"repo add r none", 2, "; give --keys DIR"},
		{"repo add --keys keys r none", 1, "none: no such file"},
		{"repo add --keys keys r folder", 3, "not a regular file"},
		{"repo add --keys keys r file", 3, `it is not signed: there is no "file.sig"`},
		{"repo remove --keys keys r web", 1, `there is no repository; make one with "mesh-release repo add"`},
		{"repo publish --trust keys r", 2, "; give --to DIR"},
		{"repo publish --trust keys --to w r", 1, "there is no repository; make one with"},
		{"repo list", 2, "; see"},
		{"repo list r", 2, "; give --trust DIR"},
		{"repo list --trust keys r", 1, "there is no repository; make one with"},
		{"repo list --trust keys folder", 3, `"file" does not belong into a repository; move it away`},
		{"repo list --trust keys file", 3, "no directory"},
		{"pack", 2, "; see"},
		{"pack --source src --version 1.0.0 --counter 1 --keys keys --out o none", 1, "none: no such file"},
		{"pack --version 1.0.0 --counter 1 --keys keys --out o none", 1, ".goreleaser.yaml: no such file or directory; run it in the source tree, or give --source DIR"},
		{"build --version 1.0.0 --counter 1 --keys keys --out o", 1, "; run it in the source tree, or give --source DIR"},
		{"build --version 1.0.0 --keys keys --out o", 1, "; run it in the source tree, or give --source DIR"},
		{"rebuild", 2, "; see"},
		{"rebuild --keys keys none", 1, "none: no such file or directory; give the directory of a release"},
		{"rebuild --trust none folder", 1, `none: no such file or directory; give the directory that "mesh-release keys export" makes`},
		{"rebuild --keys none folder", 1, "none: no such file or directory; give the directory of the keys that signed the release, or --trust DIR"},
		{"rebuild --keys keys folder", 1, "folder/release.json: no such file or directory; give the directory of a release"},
	} {
		d.fault(c.line, d.mesh(strings.Fields(c.line)...), c.code, c.says)
	}
	for _, name := range []string{"o", "r", "w", "e"} {
		if len(d.tree(name)) > 0 {
			t.Errorf("%q was made", name)
		}
	}
}
