package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

func builtAgain(t *testing.T) {
	// Somebody else: other habits, another place, other times.
	if err := os.CopyFS("copy", os.DirFS("src")); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir("copy", func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Chtimes(path, time.Unix(1, 0), time.Unix(2, 0))
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("TZ", "Asia/Kolkata")
	t.Setenv("GOMAXPROCS", "1")
	defer syscall.Umask(syscall.Umask(0o077))
	n := len(listing(t))
	out := mesh(t, 0, "rebuild", "--keys", "keys", "--source", "copy", "dist")
	if strings.Contains(out, "differs") || strings.Count(out, " same\n") != n ||
		!strings.HasSuffix(out, fmt.Sprintf("\n\ndist: release 1.0.0 built again: %d files byte by byte the same, with signatures made again\n", n)) {
		t.Errorf("%s", out)
	}
	// Whoever has no secret key gets the same signatures, as far as they cover.
	mesh(t, 0, "keys", "export", "keys", "--out", "public")
	out = mesh(t, 0, "rebuild", "--trust", "public", "--source", "copy", "dist")
	// Counted by hand: signatures of the tarball, of the seed's list, of SHA256SUMS, of
	// release.json, of 3 packages and 4 databases, 3 statements; within the tarball, the
	// bundle and the 4 databases.
	const taken = 4 + 7 + 3 + 6
	if strings.Contains(out, "differs") || strings.Count(out, " same\n") != n ||
		!strings.HasSuffix(out, fmt.Sprintf("\n\ndist: release 1.0.0 built again: %d files byte by byte the same, in %d of them with the signatures of the release, which cover what was built\n", n, taken)) {
		t.Errorf("without a key: %s", out)
	}
	// A symlink to a release is one, and programs read the same.
	if err := os.Symlink("dist", "link"); err != nil {
		t.Fatal(err)
	}
	var said struct {
		Release, Version string
		Same, Different  int
		Taken            int `json:"signatures_taken"`
		Files            []struct {
			Name  string
			Taken bool `json:"signature_taken"`
		}
	}
	out = mesh(t, 0, "rebuild", "--json", "--trust", "public", "--source", "copy", "link")
	if err := json.Unmarshal([]byte(out), &said); err != nil || said.Release != "link" || said.Version != "1.0.0" || said.Same != n ||
		said.Different != 0 || said.Taken != taken || len(said.Files) != n || said.Files[0].Name != "SHA256SUMS" || said.Files[0].Taken || !said.Files[1].Taken {
		t.Errorf("%v: %s", err, out)
	}
	// A pipe holds nobody up.
	for _, name := range []string{"release.json", "SHA256SUMS.sigstore.json"} {
		was := read(t, "dist/"+name)
		if err := errors.Join(os.Remove("dist/"+name), syscall.Mkfifo("dist/"+name, 0o600)); err != nil {
			t.Fatal(err)
		}
		if out := mesh(t, fault.Refused, "rebuild", "--trust", "public", "--source", "copy", "dist"); !strings.Contains(out, "not a regular file") {
			t.Errorf("%s is a pipe: %s", name, out)
		}
		write(t, "dist/"+name, was)
	}
	write(t, "copy/LICENSE", append(read(t, "copy/LICENSE"), '\n'))
	if out := mesh(t, fault.Failed, "rebuild", "--trust", "public", "--source", "copy", "dist"); !regexp.MustCompile(`"nox-mesh-host-1.0.0-linux-x86_64.tar.gz": .*: it has other bytes than that of the release`).MatchString(out) {
		t.Errorf("another licence, without a key: %s", out)
	}
	write(t, "copy/LICENSE", read(t, "src/LICENSE"))
	write(t, "dist/nox-mesh-1.0.0-linux-x86_64.bundle.tar", append(read(t, "dist/nox-mesh-1.0.0-linux-x86_64.bundle.tar"), 0))
	write(t, "dist/more", nil)
	if err := os.Mkdir("dist/empty", 0o755); err != nil {
		t.Fatal(err)
	}
	main := "copy/host/cmd/mesh-host/main.go"
	write(t, main, bytes.Replace(read(t, main), []byte(`"mesh-host "`), []byte(`"Mesh-Host "`), 1))
	out = mesh(t, fault.Failed, "rebuild", "--keys", "keys", "--source", "copy", "dist")
	for file, is := range map[string]string{
		"more": "differs +not built again", "empty": "differs +not built again", "nox-mesh-1.0.0-linux-x86_64.bundle.tar": "differs +byte ",
		"nox-mesh-host-1.0.0-linux-x86_64.tar.gz": "differs +byte ", "release.json": "differs +byte ",
		"arch/x86_64/nox-mesh-controller-1.0.0-1-x86_64.pkg.tar.zst": "same", "mesh-controller-1.0.0-linux-x86_64.cdx.json": "same",
	} {
		if !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(file) + ` +` + is).MatchString(out) {
			t.Errorf("%s is not %q:\n%s", file, is, out)
		}
	}
	// The same are the packages of the controller and of the keys with their
	// signatures, and the SBOM of the controller with its statement.
	if !strings.HasSuffix(out, `cannot build release "dist" again: `+strconv.Itoa(n+2-6)+` of `+strconv.Itoa(n+2)+` files differ`) {
		t.Errorf("%s", out)
	}
}

// largeSignatures: whoever has no key reads the signatures before they are
// believed, and not more of them than the list says.
func largeSignatures(t *testing.T) {
	mesh(t, 0, "keys", "export", "keys", "--out", "public")
	large := []byte(`{"a":[` + strings.Repeat("1,", 4<<20) + `1]}`)
	for _, name := range listing(t) {
		if !strings.HasSuffix(name, ".sigstore.json") && !strings.HasSuffix(name, ".sig") {
			continue
		}
		was := read(t, name)
		write(t, name, large)
		if out := mesh(t, fault.Refused, "rebuild", "--trust", "public", "--source", "src", "dist"); !strings.Contains(out, "bytes") {
			t.Errorf("%s: %s", name, out)
		}
		write(t, name, was)
	}
}
