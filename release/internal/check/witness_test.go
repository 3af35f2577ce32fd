package check

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// needs skips the test unless the programs are here.
func needs(t *testing.T, programs ...string) {
	t.Helper()
	for _, program := range programs {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not here", program)
		}
		if program == "pacman" && os.Geteuid() != 0 {
			t.Skip("needs root: pacman fetches for nobody else")
		}
	}
}

// fakes makes a folder with programs, each a script.
func fakes(t *testing.T, scripts map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, script := range scripts {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestProgramsAreFoundAsTheShellFindsThem(t *testing.T) {
	first, second := fakes(t, map[string]string{"both": ""}), fakes(t, map[string]string{"both": "", "one": ""})
	if err := os.WriteFile(filepath.Join(first, "one"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(first, "folder"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Chdir(second)
	find := In(strings.Join([]string{"", ".", first, "/nowhere", second}, ":"))
	for program, want := range map[string]string{
		"both": filepath.Join(first, "both"), "one": filepath.Join(second, "one"), "folder": "", "none": "",
	} {
		if got := find(program); got != want {
			t.Errorf("%s is %q, not %q", program, got, want)
		}
	}
}

func TestAWitnessThatIsNotHereIsCounted(t *testing.T) {
	r := &reading{Options: Options{Find: In(t.TempDir())}}
	if err := r.hearWitnesses(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r.report.Skipped != 3 || len(r.report.Witnesses) != 3 {
		t.Errorf("%d of %d are skipped", r.report.Skipped, len(r.report.Witnesses))
	}
	for _, w := range r.report.Witnesses {
		if w.Skipped != w.Program+" is not here" || w.Verified != 0 {
			t.Errorf("%+v", w)
		}
	}
}

// TestAWitnessThatCannotBeUsedIsSkipped: it is here, and no help.
func TestAWitnessThatCannotBeUsedIsSkipped(t *testing.T) {
	r := &reading{Options: Options{Find: In(fakes(t, map[string]string{
		"pacman": "echo Pacman v6", "gpg": "echo broken >&2; exit 7", "cosign": `echo '{"gitVersion": "v2.4.0"}'`,
	}))}}
	for _, c := range []struct {
		of            witness
		version, says string
	}{
		{gpg{}, "", "it does not run: exit status 7: broken"},
		{cosign{}, "v2.4.0", "it does not read these signatures; version 3 does"},
	} {
		got, err := r.hear(t.Context(), c.of)
		if err != nil || got.Version != c.version || got.Skipped != c.says || got.Verified != 0 {
			t.Errorf("%+v, %v", got, err)
		}
	}
	b := bench{dir: t.TempDir(), tools: map[string]string{"pacman": r.Find("pacman")}}
	if version, err := (pacman{}).version(t.Context(), b); version != "6" || err == nil || err.Error() != "it needs root" {
		t.Errorf("pacman, for an ordinary user: %q, %v", version, err)
	}
}

// TestAWitnessThatRefusesIsNamed by scripts in place of the programs: the file,
// and the last it printed, are in one refused line.
func TestAWitnessThatRefusesIsNamed(t *testing.T) {
	r := newPublisher(t).shown(t, "aarch64", "x86_64")
	const quietGPG = `case "$*" in *--version*) echo "gpg (GnuPG) 2.2.40";; esac; `
	for what, c := range map[string]struct {
		of      witness
		scripts map[string]string
		says    []string
	}{
		"gpg refuses": {gpg{}, map[string]string{"gpg": quietGPG + `case "$*" in *--verify*) echo a; echo b; echo c; echo last; exit 1;; esac`},
			[]string{`"arch/aarch64/nox-mesh-controller-1.0.0-1-aarch64.pkg.tar.zst": gpg refuses it: exit status 1: b | c | last`}},
		"gpg says nothing": {gpg{}, map[string]string{"gpg": quietGPG}, []string{"gpg refuses it: of 0 signatures 0 are good"}},
		"gpg takes no key": {gpg{}, map[string]string{"gpg": quietGPG + `case "$*" in *--import*) exit 2;; esac`}, []string{"the package keys", "gpg refuses it: exit status 2"}},
		"pacman refuses": {pacman{}, map[string]string{"gpg": "", "pacman": `case "$*" in *-Sy*) echo error: bad >&2; exit 1;; esac; echo Pacman v6.0.2`},
			[]string{`"arch/aarch64/nox-mesh.db": pacman refuses it: exit status 1: error: bad`}},
		"pacman does nothing": {pacman{}, map[string]string{"gpg": "", "pacman": "echo Pacman v6.0.2"}, []string{"nox-mesh.db", "did not fetch it"}},
		"cosign refuses": {cosign{}, map[string]string{"cosign": `case $1 in version) echo '{"gitVersion": "v3.1.3"}';; verify-blob) echo no; exit 1;; esac`},
			[]string{`"release.json": cosign refuses it: exit status 1: no`}},
		"cosign refuses the SBOM": {cosign{}, map[string]string{"cosign": `case $* in version*) echo '{"gitVersion": "devel"}';; *cyclonedx*) echo no; exit 1;; esac`},
			[]string{`"mesh-controller-1.0.0-linux-aarch64.cdx.sigstore.json": cosign refuses it`}},
		"cosign refuses the provenance": {cosign{}, map[string]string{"cosign": `case $* in version*) echo '{"gitVersion": "v4.0.0"}';; *slsaprovenance1*) exit 1;; esac`},
			[]string{"nox-mesh-host-1.0.0-linux-", "cosign refuses it"}},
	} {
		if _, ok := c.of.(pacman); ok && os.Geteuid() != 0 {
			continue // skipped, and the test above says so
		}
		r.Find = In(fakes(t, c.scripts))
		_, err := r.hear(t.Context(), c.of)
		if fault.KindOf(err) != fault.Refused || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", what, err)
			continue
		}
		for _, part := range c.says {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %v, want %q", what, err, part)
			}
		}
	}
}

// TestAWitnessThatIsKilledRefusesNothing: the machine, or somebody, stopped it.
func TestAWitnessThatIsKilledRefusesNothing(t *testing.T) {
	r := newPublisher(t).shown(t, "x86_64")
	r.Find = In(fakes(t, map[string]string{"gpg": `case "$*" in *--version*) echo "gpg (GnuPG) 2.2.40";; *--verify*) kill -9 $$;; esac`}))
	_, err := r.hear(t.Context(), gpg{})
	if fault.KindOf(err) != fault.Failed || !strings.Contains(fault.RemedyOf(err), "gpg") || !strings.Contains(err.Error(), "signal: killed") {
		t.Errorf("%v", err)
	}
}

// TestAWitnessThatIsInterruptedRefusesNothing: it is nobody's verdict.
func TestAWitnessThatIsInterruptedRefusesNothing(t *testing.T) {
	r := newPublisher(t).shown(t, "aarch64", "x86_64")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r.Find = In(fakes(t, map[string]string{"gpg": "", "cosign": "", "pacman": ""}))
	for _, w := range witnesses {
		if _, err := r.hear(ctx, w); err == nil || fault.KindOf(err) == fault.Refused {
			t.Errorf("%s: %v", w.needs()[0], err)
		}
	}
}

// TestRealWitnesses read a good release, and refuse what was changed in it.
// Our own reading, which goes first, is not asked here.
func TestRealWitnesses(t *testing.T) {
	p, stranger := newPublisher(t), newPublisher(t)
	const (
		repo = "arch/x86_64/"
		host = repo + "nox-mesh-host-1.0.0-1-x86_64.pkg.tar.zst"
		db   = repo + "nox-mesh.db"
	)
	r := p.shown(t, "x86_64")
	r.Find = In(os.Getenv("PATH"))
	content, list := get(t, filepath.Join(r.dir, host)), get(t, filepath.Join(r.dir, db))
	flipped := bytes.Clone(content)
	flipped[len(flipped)/2] ^= 1
	other := p.relisted(t, r, stranger.signed(t, content))
	type change struct {
		what, of string
		files    map[string][]byte
	}
	changes := []change{
		{"a flipped byte", host, map[string][]byte{host: flipped}},
		{"another key's list", db, map[string][]byte{db + ".sig": stranger.signed(t, list)}},
		{"an unsigned list", db, map[string][]byte{db + ".sig": nil}},
	}
	for _, c := range []struct {
		of      witness
		files   int
		changes []change
	}{
		// One database and three packages. The signature pacman goes by is the one
		// within the database.
		{pacman{}, 4, append(slices.Clone(changes), change{"another key's package in a good list", host, other})},
		// Two databases with two names each, and three packages.
		{gpg{}, 7, append(slices.Clone(changes),
			change{"another key's package", host, map[string][]byte{host + ".sig": stranger.signed(t, content)}},
			change{"another file's signature", host, map[string][]byte{host + ".sig": p.signed(t, list)}},
			change{"an unsigned package", host, map[string][]byte{host + ".sig": nil}},
			change{"two signatures", host, map[string][]byte{host + ".sig": bytes.Repeat(p.signed(t, content), 2)}},
		)},
	} {
		t.Run(c.of.needs()[0], func(t *testing.T) {
			needs(t, c.of.needs()...)
			hears := func() (Testimony, error) {
				t.Helper()
				t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "a $repo folder"))
				if err := os.Mkdir(os.TempDir(), 0o755); err != nil {
					t.Fatal(err)
				}
				got, err := r.hear(t.Context(), c.of)
				if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
					t.Errorf("it left %s, %v", left, err)
				}
				if left := processes(t, os.TempDir()); len(left) > 0 {
					t.Errorf("it left processes: %q", left)
				}
				return got, err
			}
			got, err := hears()
			if err != nil || got.Verified != c.files || got.Version == "" || got.Skipped != "" {
				t.Fatalf("%+v, %v", got, err)
			}
			for _, d := range c.changes {
				good, sums := map[string][]byte{}, maps.Clone(r.sums)
				for name, changed := range d.files {
					good[name] = get(t, filepath.Join(r.dir, name))
					put(t, r, name, changed)
					// As if the lists of the release had been made after it.
					r.sums[name] = sum(changed)
				}
				_, err := hears()
				want := fmt.Sprintf("%q: %s refuses it: ", d.of, c.of.needs()[0])
				if fault.KindOf(err) != fault.Refused || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
					t.Errorf("%s: %v", d.what, err)
				}
				for name, b := range good {
					put(t, r, name, b)
				}
				r.sums = sums
			}
			if _, err := hears(); err != nil {
				t.Errorf("after all was put back: %v", err)
			}
		})
	}
}

// processes are those that were started with a path below dir.
func processes(t *testing.T, dir string) []string {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil || len(all) == 0 {
		t.Fatal("no processes", err)
	}
	var out []string
	for _, file := range all {
		if b, err := os.ReadFile(file); err == nil && strings.Contains(string(b), dir) {
			out = append(out, strings.ReplaceAll(string(b), "\x00", " "))
		}
	}
	return out
}

func TestOneGoodSignatureIsWhatGPGMustSay(t *testing.T) {
	p := newPublisher(t)
	id := strings.ToUpper(p.policy.Keys("package")[0].ID)
	good := "[GNUPG:] NEWSIG\n[GNUPG:] GOODSIG 1122334455667788 a name\n[GNUPG:] VALIDSIG " + strings.Repeat("A", 40) + " 2026-01-01 1 0 4 0 22 10 00 " + id + "\n"
	if err := goodSignature(good, p.policy); err != nil {
		t.Error(err)
	}
	for what, status := range map[string]string{
		"nothing":      "",
		"two":          good + good,
		"an old key":   good + "[GNUPG:] EXPKEYSIG 1122334455667788 a name\n",
		"another key":  strings.ReplaceAll(good, id, strings.Repeat("B", 40)),
		"a name alone": strings.ReplaceAll(good, "[GNUPG:] VALID", "VALID"),
	} {
		if err := goodSignature(status, p.policy); err == nil {
			t.Errorf("%s is taken", what)
		}
	}
}
