package seed

import (
	"slices"
	"strings"
	"testing"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

func good() List {
	l := List{Name: "nox-mesh", Version: "1.0.0", Counter: 7, Architecture: "x86_64", PackageKey: strings.Repeat("ab", 20)}
	for _, name := range []string{
		"arch/x86_64/nox-mesh-host-1.0.0-1-x86_64.pkg.tar.zst", "arch/x86_64/nox-mesh-host-1.0.0-1-x86_64.pkg.tar.zst.sig",
		"arch/x86_64/nox-mesh.db", "arch/x86_64/nox-mesh.db.sig", "arch/x86_64/nox-mesh.gpg",
		"floor/nox-mesh-host-1.0.0-linux-x86_64.tar.gz", "floor/nox-mesh-host-1.0.0-linux-x86_64.tar.gz.sigstore.json",
	} {
		l.Files = append(l.Files, File{Name: name, Size: 3, SHA256: strings.Repeat("0f", 32)})
	}
	return l
}

func TestAListIsReadAsItWasWritten(t *testing.T) {
	b, err := good().Encode()
	if err != nil {
		t.Fatal(err)
	}
	l, err := Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	if l.Floor().Base() != "nox-mesh-host-1.0.0-linux-x86_64.tar.gz" || l.Keyring().Name != "arch/x86_64/nox-mesh.gpg" {
		t.Errorf("%+v", l)
	}
	if _, err := Parse(append(b, '\n')); fault.KindOf(err) != fault.Refused {
		t.Errorf("a list with more behind it: %v", err)
	}
}

// TestT10NoNameLeavesItsFolder, and none is more than one word of a shell.
func TestT10NoNameLeavesItsFolder(t *testing.T) {
	for _, name := range []string{
		"floor/../x", "floor/..", "floor/", "floor", "/floor/x", "floor/a/b", "arch/aarch64/x", "arch/x86_64/.x", "arch/x86_64//x",
		"other/x", "x", "", "floor/a b", "floor/$(a)", "floor/a;b", "floor/a'b", "floor/a\nb", "floor/a\\b", "floor/a\x00b", "floor/*", "floor/~x",
		"floor/-x", "floor/a%2fb", "floor/" + strings.Repeat("a", 256),
	} {
		l := good()
		l.Files = append(l.Files, File{Name: name, SHA256: strings.Repeat("0f", 32)})
		slices.SortFunc(l.Files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
		if _, err := l.Encode(); fault.KindOf(err) != fault.Refused || !strings.Contains(err.Error(), "none of its places") {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// TestAListSaysAllThatAMachineNeeds: leave any file out, and it is none.
func TestAListSaysAllThatAMachineNeeds(t *testing.T) {
	for i, f := range good().Files {
		l := good()
		l.Files = slices.Delete(l.Files, i, i+1)
		if _, err := l.Encode(); fault.KindOf(err) != fault.Refused {
			t.Errorf("without %s: %v", f.Name, err)
		}
	}
	for what, change := range map[string]func(*List){
		"twice":                 func(l *List) { l.Files = append(l.Files[:1], l.Files...) },
		"not in order":          func(l *List) { slices.Reverse(l.Files) },
		"no digest":             func(l *List) { l.Files[0].SHA256 = "" },
		"a negative size":       func(l *List) { l.Files[0].Size = -1 },
		"no key":                func(l *List) { l.PackageKey = "" },
		"an architecture away":  func(l *List) { l.Architecture = "../x86_64" },
		"a version for a shell": func(l *List) { l.Version = "1;reboot" },
	} {
		l := good()
		change(&l)
		if _, err := l.Encode(); fault.KindOf(err) != fault.Refused {
			t.Errorf("%s: %v", what, err)
		}
	}
}
