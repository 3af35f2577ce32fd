package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

func oneFlippedByte(t *testing.T) {
	if err := verify(t); err != nil {
		t.Fatal(err)
	}
	s := publisher(t)
	about := []string{"dist/release.json", "dist/SHA256SUMS"}
	for _, file := range listing(t) {
		good := read(t, file)
		n := len(good)
		for i, at := range []int{0, n / 5, n / 2, n - 40, n - 1} {
			if at < 0 {
				continue
			}
			b := slices.Clone(good)
			b[at] ^= 1 << (i + at%3)
			write(t, file, b)
			if err := verify(t); fault.KindOf(err) != fault.Refused {
				t.Errorf("%s, byte %d: %v", file, at, err)
			}
			// And when the lists were made after the damage: somebody else must
			// see it.
			if i < 2 || strings.HasPrefix(file, about[0]) || strings.HasPrefix(file, about[1]) {
				continue
			}
			resign(t, s)
			if err := verify(t); fault.KindOf(err) != fault.Refused {
				t.Errorf("%s, byte %d, listed so: %v", file, at, err)
			}
			write(t, file, good)
			resign(t, s)
		}
		write(t, file, good)
	}
	if err := verify(t); err != nil {
		t.Errorf("after all was put back: %v", err)
	}
}

func tarballByManifest(t *testing.T) {
	s := publisher(t)
	const file = "dist/nox-mesh-host-1.0.0-linux-x86_64.tar.gz"
	good := read(t, file)
	// The head of gzip, of which readers ignore much, the stream, its sums; not
	// the padding of its last byte, which says nothing.
	for _, at := range []int{0, 1, 2, 3, 4, 7, 8, 9, 10, 100, len(good) / 2, len(good) - 1000, len(good) - 8, len(good) - 4, len(good) - 1} {
		b := slices.Clone(good)
		b[at] ^= 2
		write(t, file, b)
		if _, err := s.File(file); err != nil {
			t.Fatal(err)
		}
		resign(t, s)
		refused(t, "byte "+string(rune('0'+at%10)), filepath.Base(file))
	}
	write(t, file, append(slices.Clone(good), 0))
	if _, err := s.File(file); err != nil {
		t.Fatal(err)
	}
	resign(t, s)
	refused(t, "a byte more", "more after its end")
}

func notTogether(t *testing.T) {
	s := publisher(t)
	keep := map[string][]byte{}
	for _, f := range listing(t) {
		keep[f] = read(t, f)
	}
	restore := func() {
		for f, b := range keep {
			write(t, f, b)
		}
	}
	// The same version and counter of another source.
	main := "src/host/cmd/mesh-host/main.go"
	write(t, main, bytes.Replace(read(t, main), []byte(`"mesh-host "`), []byte(`"Mesh-Host "`), 1))
	buildTo(t, "other")
	const (
		floor = "dist/nox-mesh-host-1.0.0-linux-x86_64.tar.gz"
		repo  = "dist/arch/x86_64/"
		pkg   = repo + "nox-mesh-host-1.0.0-1-x86_64.pkg.tar.zst"
	)
	for what, c := range map[string]struct {
		do   func()
		says string
	}{
		"another tarball": {func() {
			for _, f := range []string{floor, floor + trust.SignatureSuffix} {
				write(t, f, read(t, "other"+strings.TrimPrefix(f, "dist")))
			}
		}, "nox-mesh-host-1.0.0-1-x86_64.pkg.tar.zst"},
		"another package": {func() {
			for _, f := range []string{pkg, pkg + ".sig"} {
				write(t, f, read(t, "other"+strings.TrimPrefix(f, "dist")))
			}
		}, "its mesh-host is not the one"},
		"another tarball and package": {func() {
			for _, f := range []string{floor, floor + trust.SignatureSuffix, pkg, pkg + ".sig"} {
				write(t, f, read(t, "other"+strings.TrimPrefix(f, "dist")))
			}
		}, "does not say what the packages say"},
		"another database": {func() {
			for _, f := range []string{"nox-mesh.files", "nox-mesh.files.sig", "nox-mesh.files.tar.zst", "nox-mesh.files.tar.zst.sig"} {
				b := read(t, "other/arch/x86_64/"+f)
				write(t, repo+f, b)
			}
			for _, f := range []string{"nox-mesh.db", "nox-mesh.db.sig"} {
				write(t, repo+f, read(t, "other/arch/x86_64/"+f))
			}
		}, "it is not the same as"},
		"a signature of another file": {func() { write(t, pkg+".sig", read(t, repo+"nox-mesh.db.sig")) }, "bad signature"},
		"no signature":                {func() { write(t, pkg+".sig", nil) }, "no signature"},
	} {
		restore()
		c.do()
		resign(t, s)
		refused(t, what, c.says)
	}
	for what, c := range map[string]struct {
		do   func() error
		says string
	}{
		"a file more":        {func() error { return os.WriteFile("dist/arch/README", nil, 0o644) }, `"arch/README": it is no file of this release`},
		"an empty folder":    {func() error { return os.Mkdir("dist/arch/empty", 0o755) }, `"arch/empty": it is no file of this release`},
		"a file less":        {func() error { return os.Remove(floor) }, "it is listed, and not there"},
		"no release.json":    {func() error { return os.Remove("dist/release.json") }, "no finished release"},
		"a symlink":          {func() error { os.Remove(floor); return os.Symlink("SHA256SUMS", floor) }, "not a regular file"},
		"a pipe":             {func() error { os.Remove(floor); return syscall.Mkfifo(floor, 0o600) }, "not a regular file"},
		"sums of a mirror":   {func() error { return s.Write("dist/SHA256SUMS", nil) }, "SHA256SUMS"},
		"one that was empty": {func() error { return os.Truncate("dist/release.json", 0) }, "release.json"},
	} {
		os.Remove("dist/arch/README")
		os.Remove("dist/arch/empty")
		os.Remove(floor)
		restore()
		if err := c.do(); err != nil {
			t.Fatal(err)
		}
		refused(t, what, c.says)
	}
	os.Remove(floor)
	restore()
	os.Remove("dist/arch/README")
	os.Remove("dist/arch/empty")
	mesh(t, 0, "keys", "init", "strangers")
	mesh(t, fault.Refused, "verify", "--trust", "strangers", "dist")
	mesh(t, fault.Usage, "verify", "dist")
	if out := mesh(t, 0, "verify", "--trust", "keys", "dist"); !strings.Contains(out, "counter 1700000000, of a commit that is not known: good") {
		t.Errorf("%s", out)
	}
	if err := os.Symlink("dist", "link"); err != nil {
		t.Fatal(err)
	}
	if out := mesh(t, 0, "verify", "--trust", "keys", "link"); !strings.Contains(out, "\nlink: release 1.0.0") {
		t.Errorf("through a symlink: %s", out)
	}
}

// oneSpelling: nothing can be added to a signature of a release, be it listed or not.
func oneSpelling(t *testing.T) {
	floor := "nox-mesh-host-1.0.0-linux-x86_64.tar.gz.sigstore.json"
	for _, name := range []string{"release.json.sigstore.json", "SHA256SUMS.sigstore.json", floor} {
		was := read(t, "dist/"+name)
		for what, b := range map[string][]byte{"a line end": append(bytes.Clone(was), '\n'), "a blank": append([]byte(" "), was...)} {
			write(t, "dist/"+name, b)
			if name == floor {
				resign(t, publisher(t))
			}
			refused(t, what, name+`": it is not written as mesh-release writes a signature`)
		}
		write(t, "dist/"+name, was)
		if name == floor {
			resign(t, publisher(t))
		}
		if err := verify(t); err != nil {
			t.Errorf("as it was: %v", err)
		}
	}
}
