package recipe

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nox-mesh/nox-mesh/bundle"
	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/release/internal/keys"
)

// signers makes a publisher's keys; sign signs with their package key.
func signers(t *testing.T) (policy *trust.Policy, sign func(content string) string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "keys")
	secret := []byte("correct horse")
	if _, err := keys.Init(dir, slices.Clone(secret), time.Now()); err != nil {
		t.Fatal(err)
	}
	key, err := keys.OpenPackage(dir, func() ([]byte, error) { return slices.Clone(secret), nil })
	if err != nil {
		t.Fatal(err)
	}
	if policy, err = trust.LoadDir(dir); err != nil {
		t.Fatal(err)
	}
	return policy, func(content string) string {
		sig, err := keys.SignPackage(key, strings.NewReader(content), time.Now())
		if err != nil {
			t.Fatal(err)
		}
		return string(sig)
	}
}

// TestASignatureIsOfItsPackage: who has keys at hand is told of a signature that no
// machine would take when the bundle is made, and not by the machines.
func TestASignatureIsOfItsPackage(t *testing.T) {
	policy, sign := signers(t)
	_, stranger := signers(t)
	htop := packageFor("x86_64")
	flipped := []byte(sign(htop))
	flipped[len(flipped)-1] ^= 1
	for _, c := range []struct {
		name, signature string
		policy          *trust.Policy
		want, note      string
	}{
		{"the publisher's", sign(htop), policy, "", ""},
		{"of another package", sign("another"), policy, "bad signature", ""},
		{"damaged", string(flipped), policy, "bad signature", ""},
		{"something behind it", sign(htop) + sign(htop), policy, "more than one signature", ""},
		{"no signature", "\x88signature", policy, "malformed signature", ""},
		{"a stranger's", stranger(htop), policy, "", "its key is not the publisher's"},
		{"no keys at hand", sign("another"), nil, "", "no keys are named"},
	} {
		t.Run(c.name, func(t *testing.T) {
			files := full()
			files["htop.pkg.tar.zst.sig"] = c.signature
			r, err := Read(folder(t, files))
			if err == nil {
				err = r.Fill(Given{})
			}
			if err != nil {
				t.Fatal(err)
			}
			var notes []string
			_, err = r.Spec(t.Context(), Making{Policy: c.policy, Now: time.Now(), Note: func(text string) { notes = append(notes, text) }})
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (fault.KindOf(err) != fault.Refused || !strings.Contains(err.Error(), `signature of package "htop"`) || !strings.Contains(err.Error(), c.want)):
				t.Errorf("%v, want %q", err, c.want)
			}
			if all := strings.Join(notes, "\n"); (c.note == "") != (all == "") || !strings.Contains(all, c.note) {
				t.Errorf("noted %q, want %q", all, c.note)
			}
		})
	}
}

// TestAPackageIsWhatIsDeclared: the machine would install something, and find each
// time it looks that what it was told to have is not there.
func TestAPackageIsWhatIsDeclared(t *testing.T) {
	declared := func(name, version string) string {
		return strings.Replace(fullDeclaration, `"name": "htop"`, `"name": "`+name+`"`+version, 1)
	}
	for _, c := range []struct{ name, declaration, want string }{
		{"any version", declared("htop", ""), ""},
		{"its version", declared("htop", `, "version": "3.3.0-1"`), ""},
		{"another name", declared("btop", ""), `resources[0] ("p") of declaration "site.json" is to install package "btop", its source is package "htop"`},
		{"another version", declared("htop", `, "version": "3.4.0-1"`), `is to install version "3.4.0-1", its source is version "3.3.0-1"`},
		{"a version without its release", declared("htop", `, "version": "3.3.0"`), `is to install version "3.3.0", its source is version "3.3.0-1"`},
	} {
		files := full()
		files["site.json"] = c.declaration
		_, err := specOf(t, files, Given{})
		if c.want == "" && err != nil || c.want != "" && (fault.KindOf(err) != fault.Refused || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// TestReadingSaysHowFarItIs: to the last byte, and what it reads.
func TestReadingSaysHowFarItIs(t *testing.T) {
	policy, sign := signers(t)
	files := full()
	files["htop.pkg.tar.zst.sig"] = sign(packageFor("x86_64"))
	files["tool"] = strings.Repeat("a tool\n", 100_000)
	files["bundle.toml"] += "[[file]]\ntitle = \"tool\"\npath = \"tool\"\ncompress = true\n"
	files["site.json"] = strings.Replace(fullDeclaration, `{"id": "c"`, `{"id": "t", "type": "file", "path": "/opt/tool", "source": "file:tool"}, {"id": "c"`, 1)
	r, err := Read(folder(t, files))
	if err == nil {
		err = r.Fill(Given{})
	}
	if err != nil {
		t.Fatal(err)
	}
	var last bundle.Progress
	var titles []string
	if _, err := r.Spec(t.Context(), Making{Policy: policy, Now: time.Now(), Progress: func(p bundle.Progress) {
		if p.Done < last.Done {
			t.Errorf("%d after %d", p.Done, last.Done)
		}
		if p.Title != last.Title {
			titles = append(titles, p.Title)
		}
		last = p
	}}); err != nil {
		t.Fatal(err)
	}
	if want := int64(len(files["tool"]) + 2*len(files["htop.pkg.tar.zst"]) + len(files["htop.pkg.tar.zst.sig"])); last.Done != want || last.Total != want {
		t.Errorf("it ends at %d of %d, want %d", last.Done, last.Total, want)
	}
	if got := strings.Join(titles, ", "); got != "tool, htop, htop.sig" {
		t.Errorf("it reads %s", got)
	}
}
