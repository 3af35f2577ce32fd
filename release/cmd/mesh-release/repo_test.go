package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/goreleaser/nfpm/v2"
	"github.com/goreleaser/nfpm/v2/files"
	"golang.org/x/sys/unix"

	"github.com/nox-mesh/nox-mesh/internal/cli"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/release/internal/arch"
	"github.com/nox-mesh/nox-mesh/release/internal/keys"
)

// A listener keeps what is written to it, and then does something.
type listener struct {
	bytes.Buffer
	then func()
}

func (l *listener) Write(b []byte) (int, error) {
	defer l.then()
	return l.Buffer.Write(b)
}

// TestRepo walks a repository through its commands, with keys of "keys init".
func TestRepo(t *testing.T) {
	top := t.TempDir()
	t.Chdir(top)
	file := func(name, content string) string {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	t.Setenv("NOX_PASSPHRASE_FILE", filepath.Join(top, file("secret", "correct horse\n")))
	mesh := func(want fault.Kind, args ...string) string {
		t.Helper()
		var out bytes.Buffer
		err := run(context.Background(), args, cli.Stdio{In: strings.NewReader(""), Out: &out, Err: &out})
		if fault.KindOf(err) != want {
			t.Fatalf("mesh-release %s: %v, want exit code %d", strings.Join(args, " "), err, want)
		}
		return out.String()
	}
	mesh(0, "keys", "init", "keys")
	mesh(0, "keys", "init", "others")
	pack := func(by, version string) string {
		t.Helper()
		m, err := arch.Write(t.Context(), top, arch.Package{Info: &nfpm.Info{
			Name: "web", Arch: "all", Version: version, Description: "a test", License: "MIT", MTime: time.Unix(1700000000, 0), DisableGlobbing: true,
			Overridables: nfpm.Overridables{Contents: files.Contents{{Source: file("program", version), Destination: "/usr/bin/web", FileInfo: &files.ContentFileInfo{Mode: 0o755}}}},
		}})
		if err != nil {
			t.Fatal(err)
		}
		key, err := keys.OpenPackage(by, func() ([]byte, error) { return []byte("correct horse"), nil })
		if err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(m.FileName())
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		sig, err := keys.SignPackage(key, f, time.Unix(1700000000, 0))
		if err != nil {
			t.Fatal(err)
		}
		file(m.FileName()+".sig", string(sig))
		return m.FileName()
	}
	one, two := pack("keys", "1.0.0-rc.1"), pack("keys", "1.0.0")

	mesh(fault.Usage, "repo", "add", "repo")
	mesh(fault.Usage, "repo", "add", "repo", one)
	mesh(fault.Usage, "repo", "add", "--keys", "keys", "--keep", "0", "repo", one)
	mesh(fault.Refused, "repo", "add", "--keys", "others", "repo", one)
	if _, err := os.Stat("repo"); err == nil {
		t.Error("what was refused made a repository")
	}
	if got := mesh(0, "repo", "add", "--keys", "keys", "--dry-run", "repo", one); got != "+ web-1.0.0rc1-1-any.pkg.tar.zst\n1 listed\n" {
		t.Errorf("dry run: %s", got)
	}
	mesh(fault.Failed, "repo", "list", "--trust", "keys", "repo")
	mesh(0, "repo", "add", "--keys", "keys", "repo", two)
	if got := mesh(0, "repo", "add", "--keys", "keys", "repo", one); got != "+ web-1.0.0rc1-1-any.pkg.tar.zst\n1 listed\n" {
		t.Errorf("add: %s", got)
	}
	var list []struct {
		Version string
		Listed  bool
	}
	if err := json.Unmarshal([]byte(mesh(0, "repo", "list", "--trust", "keys", "--json", "repo")), &list); err != nil {
		t.Fatal(err)
	}
	if len(list) != 2 || list[0].Version != "1.0.0-1" || !list[0].Listed || list[1].Listed {
		t.Errorf("list: %+v", list)
	}
	mesh(fault.Usage, "repo", "list", "repo")
	mesh(fault.Refused, "repo", "list", "--trust", "others", "repo")
	mesh(fault.Usage, "repo", "publish", "--trust", "keys", "repo")
	mesh(0, "repo", "publish", "--trust", "keys", "--to", "www/any", "repo")
	mesh(0, "repo", "list", "--keys", "keys", "www/any")
	// Whom another program's lock holds up is told what is waited for.
	held, err := os.Open("www")
	if err == nil {
		defer held.Close()
		err = unix.Flock(int(held.Fd()), unix.LOCK_EX)
	}
	if err != nil {
		t.Fatal(err)
	}
	heard := &listener{then: func() { _ = unix.Flock(int(held.Fd()), unix.LOCK_UN) }}
	err = run(t.Context(), []string{"repo", "publish", "--trust", "keys", "--to", "www/any", "repo"}, cli.Stdio{In: strings.NewReader(""), Out: &bytes.Buffer{}, Err: heard})
	if want := fmt.Sprintf("note: waiting for another program, which has locked %q: \"lslocks\" shows it\n", filepath.Join(top, "www")); err != nil || heard.String() != want {
		t.Errorf("%v, said %q", err, heard)
	}
	mesh(fault.Refused, "repo", "publish", "--trust", "keys", "--to", "keys", "repo")
	// Somebody's packages are not replaced, with a database that is none or without.
	if err := os.Mkdir("cache", 0o755); err != nil {
		t.Fatal(err)
	}
	file("cache/theirs-1-1-any.pkg.tar.zst", "theirs")
	file("cache/theirs-1-1-any.pkg.tar.zst.sig", "theirs")
	mesh(fault.Refused, "repo", "publish", "--trust", "keys", "--to", "cache", "repo")
	file("cache/nox-mesh.db", "junk")
	mesh(fault.Refused, "repo", "publish", "--trust", "keys", "--to", "cache", "repo")
	if left, err := os.ReadDir("cache"); err != nil || len(left) != 3 {
		t.Errorf("there is %v, %v", left, err)
	}
	mesh(fault.Usage, "repo", "publish", "--trust", "keys", "--to", "repo/sub", "repo")
	mesh(fault.Failed, "repo", "remove", "--keys", "keys", "repo", "mail")
	if got := mesh(0, "repo", "remove", "--keys", "keys", "repo", "web"); !strings.HasSuffix(got, "0 listed\n") {
		t.Errorf("remove: %s", got)
	}
}
