package arch

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nox-mesh/nox-mesh/lab/oracle/tool"
)

// TestLifeOfThePackage is all that pacman does with nox-mesh-host, with nothing
// accepted that is not signed.
func TestLifeOfThePackage(t *testing.T) {
	needs(t, "pacman", "repo-add", "gpg", "bsdtar", "ldd", "go")
	k, stub := newSigner(t), stubHost(t)
	trust := filepath.Dir(file(t, filepath.Join(t.TempDir(), "trust/1.root.json"), "{}"))
	dirs, packed := map[string]string{}, map[string]inspected{}
	for _, version := range []string{"1.0.0-rc.1", "1.0.0", "1.1.0"} {
		dir := t.TempDir()
		p := ""
		if version == "1.1.0" {
			p = packNfpm(t, dir, hostWithOtherConfig(t))
		} else {
			p = pack(t, dir, "host", version, stub, trust)
		}
		k.sign(p)
		k.repository(p)
		dirs[version], packed[version] = dir, inspect(t, p)
	}
	// current is the repository as it is today: a symlink to one of them.
	current := filepath.Join(t.TempDir(), "current")
	publish := func(version string) {
		_ = os.Remove(current)
		if err := os.Symlink(dirs[version], current); err != nil {
			t.Fatal(err)
		}
	}
	for place, server := range places(t, current) {
		t.Run(place, func(t *testing.T) {
			r := newRoot(t, k, server)
			get := func(version string) {
				t.Helper()
				publish(version)
				if server == "" {
					found, err := filepath.Glob(filepath.Join(current, "*.pkg.tar.zst"))
					if err != nil || len(found) != 1 {
						t.Fatal(found, err)
					}
					r.pacman("-U", found[0])
					return
				}
				// -yy and -uu: an older database and an older package are taken as well.
				r.pacman("-Syyuu", "nox-mesh-host")
			}
			is := func(version string) {
				t.Helper()
				// After it there may be a warning about the keyring's format.
				if got, _, _ := strings.Cut(r.pacman("-Q", "nox-mesh-host"), "\n"); got != "nox-mesh-host "+version {
					t.Errorf("installed is %q, not %s", got, version)
				}
			}

			step := func(name, theirs, version, key string) {
				t.Helper()
				tool.Verdict(t, "pacman", "life, from "+place+": "+name, theirs, packed[version].line(key))
			}
			installed := func() string {
				out, _ := r.try("-Q", "nox-mesh-host")
				line, _, _ := strings.Cut(out, "\n")
				return line
			}
			// config is what there is of the configuration, and whose it is.
			config := r.path("/etc/nox-mesh/host.toml")
			whose := func() string {
				var said []string
				for _, suffix := range []string{"", ".pacnew", ".pacsave"} {
					if exists(config + suffix) {
						who := "the package's"
						if read(t, config+suffix) == "# mine\n" {
							who = "as edited"
						}
						said = append(said, "host.toml"+suffix+" "+who)
					}
				}
				return strings.Join(said, ", ")
			}

			get("1.0.0-rc.1")
			is("1.0.0rc1-1")
			step("install", installed(), "1.0.0-rc.1", "pkgver")
			n := r.intact("nox-mesh-host")
			if n < 30 {
				t.Errorf("pacman checked %d files", n)
			}
			// Of the metadata pacman counts the scriptlet alone.
			tool.Verdict(t, "pacman", "life, from "+place+": -Qkk", fmt.Sprintf("%d files, 0 altered", n), fmt.Sprintf("%d entries in the package, %d in .MTREE", len(packed["1.0.0-rc.1"].listing), len(packed["1.0.0-rc.1"].mtree)))
			for p, mode := range map[string]string{
				"/usr/bin/mesh-host": "-rwxr-xr-x", "/var/lib/nox-mesh": "drwx------", "/etc/nox-mesh/host.toml": "-rw-r--r--",
				"/usr/lib/systemd/system/mesh-host.service": "-rw-r--r--", "/usr/share/nox-mesh/trust/1.root.json": "-rw-r--r--",
			} {
				if fi, err := os.Lstat(r.path(p)); err != nil || fi.Mode().String() != mode {
					t.Errorf("%s: %v, %v; want %s", p, fi, err, mode)
				}
			}

			// The release follows its candidate, and what a person wrote stays.
			file(t, config, "# mine\n")
			get("1.0.0")
			is("1.0.0-1")
			if read(t, config) != "# mine\n" || exists(config+".pacnew") {
				t.Error("an upgrade with the same default touched the configuration")
			}
			step("upgrade", installed()+": "+whose(), "1.0.0", "backup")
			get("1.1.0")
			is("1.1.0-1")
			step("upgrade with a new default", installed()+": "+whose(), "1.1.0", "backup")
			if read(t, config) != "# mine\n" || read(t, config+".pacnew") != "# a new default\n" {
				t.Error("an upgrade with a new default did not put it beside the configuration")
			}
			if err := os.Remove(config + ".pacnew"); err != nil {
				t.Fatal(err)
			}

			get("1.0.0") // back
			is("1.0.0-1")
			step("downgrade", installed()+": "+whose(), "1.0.0", "pkgver")
			if read(t, config) != "# mine\n" {
				t.Error("a downgrade touched the configuration")
			}

			state := file(t, r.path("/var/lib/nox-mesh/host/store.db"), "state")
			r.pacman("-R", "nox-mesh-host")
			step("remove", whose()+", state kept: "+fmt.Sprint(exists(state)), "1.0.0", "backup")
			if read(t, state) != "state" {
				t.Error("the state is gone")
			}
			if exists(config) || read(t, config+".pacsave") != "# mine\n" {
				t.Error("the configuration is not kept as .pacsave")
			}
			if exists(r.path("/usr/bin/mesh-host")) || exists(r.path("/usr/share/nox-mesh")) || exists(r.path("/usr/share/licenses/nox-mesh-host")) {
				t.Error("files are left")
			}

			// And where there is no state, nothing is left.
			if err := os.RemoveAll(r.path("/var/lib/nox-mesh")); err != nil {
				t.Fatal(err)
			}
			get("1.0.0")
			file(t, r.path("/var/lib/nox-mesh/launcher/mesh-host"), "a copy")
			r.pacman("-Rn", "nox-mesh-host")
			if exists(r.path("/var/lib/nox-mesh")) || exists(r.path("/usr/lib/systemd")) {
				t.Error("folders are left")
			}
		})
	}
}

// hostWithOtherConfig is a later nox-mesh-host with another default.
func hostWithOtherConfig(t *testing.T) string {
	return "name: nox-mesh-host\narch: amd64\nversion: 1.1.0\nmtime: 2023-11-14T22:13:20Z\ncontents:\n" +
		"- {dst: /var/lib/nox-mesh, type: dir, file_info: {mode: 0700}}\n" +
		"- {src: " + stubHost(t) + ", dst: /usr/bin/mesh-host}\n" +
		"- {src: " + file(t, filepath.Join(t.TempDir(), "host.toml"), "# a new default\n") + ", dst: /etc/nox-mesh/host.toml, type: config}\n"
}

// TestPacmanRefusesWhatIsNotSigned shows that the roots of these tests check
// signatures at all.
func TestPacmanRefusesWhatIsNotSigned(t *testing.T) {
	needs(t, "pacman", "gpg", "ldd", "go")
	ours, other := newSigner(t), newSigner(t)
	p := pack(t, t.TempDir(), "host", "1.0.0", stubHost(t), "")
	r := newRoot(t, ours, "")
	if out, err := r.try("-U", p); err == nil {
		t.Errorf("an unsigned package is installed:\n%s", out)
	}
	other.sign(p)
	if out, err := r.try("-U", p); err == nil {
		t.Errorf("a package signed by somebody is installed:\n%s", out)
	}
	ours.sign(p)
	r.pacman("-U", p)
	r.intact("nox-mesh-host")
}

// TestKeyringAndControllerInstall are the two small packages.
func TestKeyringAndControllerInstall(t *testing.T) {
	needs(t, "pacman", "gpg", "ldd", "go")
	k, dir := newSigner(t), t.TempDir()
	k.gpg("--output", filepath.Join(dir, "nox-mesh.gpg"), "--export", k.key)
	file(t, filepath.Join(dir, "nox-mesh-trusted"), k.key+":4:\n")
	file(t, filepath.Join(dir, "nox-mesh-revoked"), "")
	packages := []string{
		pack(t, t.TempDir(), "keyring", "1.0.0", dir),
		pack(t, t.TempDir(), "controller", "1.0.0", stubHost(t), ""),
	}
	k.sign(packages...)
	r := newRoot(t, k, "")
	r.pacman(append([]string{"-U"}, packages...)...)
	r.intact("nox-mesh-keyring")
	r.intact("nox-mesh-controller")
	if read(t, r.path("/usr/share/pacman/keyrings/nox-mesh-trusted")) != k.key+":4:\n" {
		t.Error("another list of trusted keys")
	}
	if units := r.path("/usr/lib/systemd"); exists(units) {
		t.Error("the control plane's package has a unit")
	}
	r.pacman("-R", "nox-mesh-keyring", "nox-mesh-controller")
}
