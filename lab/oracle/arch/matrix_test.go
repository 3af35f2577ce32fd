package arch

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nox-mesh/nox-mesh/lab/oracle/tool"
)

// A matrixCase is an input that has broken a packer somewhere.
type matrixCase struct {
	name string
	// lay makes the tree below dir, which is /usr/share/NAME.
	lay func(t *testing.T, dir string)
	// known is what differs on purpose, with the reason.
	known string
}

var matrix = []matrixCase{
	{"plain", func(t *testing.T, d string) { file(t, d+"/a", "a\n") }, ""},
	{"spaces", func(t *testing.T, d string) { file(t, d+"/a folder/ a  file ", "x\n"); file(t, d+"/#a=b\\c", "y\n") }, ""},
	{"nonascii", func(t *testing.T, d string) { file(t, d+"/é/日本 語", "x\n"); file(t, d+"/ü", "y\n") }, ""},
	{"setuid", func(t *testing.T, d string) {
		for mode, name := range map[os.FileMode]string{0o755 | os.ModeSetuid: "u", 0o755 | os.ModeSetgid: "g", 0o600: "private", 0o444: "ro"} {
			if err := os.Chmod(file(t, d+"/"+name, name), mode); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Mkdir(d+"/sticky", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(d+"/sticky", 0o775|os.ModeSticky); err != nil {
			t.Fatal(err)
		}
	}, ""},
	{"long", func(t *testing.T, d string) {
		file(t, d+"/"+strings.Repeat("n", 101), "name over 100\n")
		file(t, d+"/"+strings.Repeat("m", 255), "name of 255\n")
		file(t, d+strings.Repeat("/"+strings.Repeat("d", 60), 5)+"/f", "path over 255\n")
		if err := os.Symlink(strings.Repeat("t", 200), d+"/link"); err != nil {
			t.Fatal(err)
		}
	}, ""},
	{"empty", func(t *testing.T, d string) { file(t, d+"/nothing", "") }, ""},
	{"deep", func(t *testing.T, d string) {
		file(t, d+strings.Repeat("/d", 60)+"/f", "deep\n")
		for i := range 40 {
			file(t, fmt.Sprintf("%s/wide/%d/f", d, i), "wide\n")
		}
	}, ""},
	{"order", func(t *testing.T, d string) { // "a-" sorts before "a/", and after "a"
		file(t, d+"/a/x", "1\n")
		file(t, d+"/a-/x", "2\n")
		file(t, d+"/a.b", "3\n")
		file(t, d+"/B", "4\n")
	}, ""},
	{"symlinks", func(t *testing.T, d string) {
		for name, to := range map[string]string{"rel": "../x/y", "abs": "/etc/os release", "loop": "loop", "dir": "."} {
			if err := os.Symlink(to, filepath.Join(d, name)); err != nil {
				t.Fatal(err)
			}
		}
	}, ""},
	{"hardlinks", func(t *testing.T, d string) {
		if err := os.Link(file(t, d+"/one", "one\n"), d+"/two"); err != nil {
			t.Fatal(err)
		}
	}, "nfpm's model has no hard links: each name is a file of its own"},
	{"emptydirs", func(t *testing.T, d string) {
		if err := os.MkdirAll(d+"/a/b/c", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(d+"/closed", 0o700); err != nil {
			t.Fatal(err)
		}
	}, ""},
}

// TestMatrixAgainstMakepkg packs the inputs with makepkg and with ours, has pacman
// install both, and compares what they say and what is on the disk. makepkg takes
// its time, so that the inputs share two packages.
func TestMatrixAgainstMakepkg(t *testing.T) {
	needs(t, "makepkg", "fakeroot", "bsdtar", "unshare", "pacman", "gpg", "ldd", "go", "zstd")
	usual := slices.DeleteFunc(slices.Clone(matrix), func(c matrixCase) bool { return c.known != "" })
	odd := append([]matrixCase{matrix[0]}, slices.DeleteFunc(slices.Clone(matrix), func(c matrixCase) bool { return c.known == "" })...)
	for _, run := range []struct {
		full, nfpm, pkgbuild string
		cases                []matrixCase
	}{
		{"1.0.0-1", "version: 1.0.0\n", "pkgver=1.0.0\npkgrel=1\n", usual},
		{"2:1.0.0rc1-1.1", "version: 1.0.0-rc.1\nrelease: \"1.1\"\nepoch: 2\n", "pkgver=1.0.0rc1\npkgrel=1.1\nepoch=2\n", odd},
	} {
		compareRun(t, run.full, run.nfpm, run.pkgbuild, run.cases)
	}
}

func compareRun(t *testing.T, full, nfpm, pkgbuild string, cases []matrixCase) {
	t.Helper()
	k, dir := newSigner(t), t.TempDir()
	for _, c := range cases {
		top := filepath.Join(dir, "tree/usr/share", c.name)
		if err := os.MkdirAll(top, 0o755); err != nil {
			t.Fatal(err)
		}
		c.lay(t, top)
	}
	file(t, filepath.Join(dir, "PKGBUILD"), "pkgname=matrix\n"+pkgbuild+"pkgdesc='a matrix'\nurl=http://127.0.0.1/\narch=(any)\nlicense=(MIT)\ndepends=('sh>=1' other)\n"+
		"optdepends=('x: for y')\nconflicts=(n)\nprovides=(m=1)\nreplaces=(o)\noptions=(!strip !zipman emptydirs)\n"+
		"package() {\n\tcp -a --no-preserve=ownership \"$startdir/tree/.\" \"$pkgdir/\"\n}\n")
	packages := map[string]string{
		"makepkg": filepath.Join(makepkg(t, dir), "matrix-"+full+"-any.pkg.tar.zst"),
		"ours": packNfpm(t, t.TempDir(), "name: matrix\narch: all\nmtime: 2023-11-14T22:13:20Z\ndescription: a matrix\nhomepage: http://127.0.0.1/\n"+
			"maintainer: nox-mesh <packages@nox-mesh.invalid>\nlicense: MIT\ndepends: [\"sh>=1\", other]\nsuggests: [\"x: for y\"]\nconflicts: [n]\nprovides: [m=1]\nreplaces: [o]\n"+
			nfpm+"contents:\n- {src: "+dir+"/tree, dst: /, type: tree}\n"),
	}
	if got := filepath.Base(packages["ours"]); got != filepath.Base(packages["makepkg"]) {
		t.Errorf("makepkg calls it %s, we %s", filepath.Base(packages["makepkg"]), got)
	}
	// Ours in the locale in which a host calls pacman: names must be bytes there.
	roots := map[string]*root{"makepkg": newRoot(t, k, ""), "ours": newRoot(t, k, "")}
	roots["ours"].env = []string{"LC_ALL=C"}
	counts := map[string]int{}
	for _, who := range []string{"makepkg", "ours"} {
		r := roots[who]
		k.sign(packages[who])
		r.pacman("-Udd", packages[who])
		counts[who] = r.intact("matrix")
	}
	if counts["ours"] != counts["makepkg"] {
		t.Errorf("pacman checks %v files", counts)
	}
	tool.Verdict(t, "pacman", "matrix "+full+": -Qkk", fmt.Sprintf("of makepkg's: %d files", counts["makepkg"]), fmt.Sprintf("of ours: %d files", counts["ours"]))
	theirs, ours := inspect(t, packages["makepkg"]), inspect(t, packages["ours"])
	for _, c := range cases {
		t.Run(c.name+" "+full, func(t *testing.T) {
			found := differences(theirs.below(c.name), ours.below(c.name))
			if (len(found) > 0) != (c.known != "") {
				t.Errorf("differences (%s):\n%s", c.known, strings.Join(found, "\n"))
			}
			for _, r := range roots {
				r.t = t
			}
			a, b := roots["makepkg"].snapshot("/usr/share/"+c.name), roots["ours"].snapshot("/usr/share/"+c.name)
			if !maps.Equal(a, b) {
				t.Errorf("installed by makepkg's package\n%q\nby ours\n%q", a, b)
			}
			if !maps.Equal(a, b) {
				found = append(found, "what is installed")
			}
			tool.Verdict(t, "makepkg", "matrix "+full+": "+c.name, fmt.Sprintf("%d entries, %d on the disk", len(theirs.below(c.name).mtree), len(a)), compared(found, c.known))
		})
		if c.known != "" {
			theirs, ours = theirs.without(c.name), ours.without(c.name)
		}
	}
	// The rest: metadata, and the order of it all.
	rest := differences(theirs, ours)
	for _, d := range rest {
		t.Error(d)
	}
	tool.Verdict(t, "makepkg", "matrix "+full+": metadata, order", fmt.Sprintf("%d lines of .PKGINFO, %d entries", len(theirs.info), len(theirs.listing)), compared(rest, ""))
}
