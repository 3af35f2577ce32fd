package pkgbuild

import (
	"bytes"
	"strings"
	"testing"
)

const (
	sumA = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
	sumB = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	good = "nox-mesh-floor-1 1.0.0 x86_64\n" +
		sumB + " 0 0644 LICENSE\n" +
		sumA + " 3 0755 mesh-host\n"
)

func TestManifestHasOneSpelling(t *testing.T) {
	m, err := ParseManifest([]byte(good))
	if err != nil {
		t.Fatal(err)
	}
	if got := string(m.Encode()); got != good {
		t.Errorf("encoded:\n%s", got)
	}
	if f, ok := m.Member("mesh-host"); !ok || f.Size != 3 || f.Mode != 0o755 || f.SHA256 != sumA {
		t.Errorf("mesh-host is %+v", f)
	}
	if m.Version != "1.0.0" || m.Architecture != "x86_64" || len(m.Members) != 2 {
		t.Errorf("read %+v", m)
	}
}

func TestManifestRefuses(t *testing.T) {
	head := "nox-mesh-floor-1 1.0.0 x86_64\n"
	member := func(path string) string { return sumA + " 3 0644 " + path + "\n" }
	for name, text := range map[string]string{
		"nothing":             "",
		"another magic":       "nox-mesh-floor-2 1.0.0 x86_64\n",
		"no architecture":     "nox-mesh-floor-1 1.0.0\n",
		"a version with ..":   "nox-mesh-floor-1 .. x86_64\n",
		"no last line break":  strings.TrimSuffix(good, "\n"),
		"an empty line":       good + "\n",
		"CR":                  strings.ReplaceAll(good, "\n", "\r\n"),
		"absolute":            head + member("/etc/passwd"),
		"dot dot":             head + member("share/../../etc/passwd"),
		"dot":                 head + member("./a"),
		"hidden":              head + member(".profile"),
		"empty segment":       head + member("a//b"),
		"a folder":            head + member("a/"),
		"an option":           head + member("-rf"),
		"a space":             head + member("a b"),
		"NUL":                 head + member("a\x00b"),
		"backslash":           head + member(`a\b`),
		"duplicate":           head + member("a") + member("a"),
		"file and folder":     head + member("a/b/c") + member("a"),
		"itself":              head + member("MANIFEST"),
		"its signature":       head + member("MANIFEST.sigstore.json"),
		"upper-case digest":   head + strings.ToUpper(sumA) + " 3 0644 a\n",
		"short digest":        head + sumA[2:] + " 3 0644 a\n",
		"a size with a zero":  head + sumA + " 03 0644 a\n",
		"a size with a plus":  head + sumA + " +3 0644 a\n",
		"a negative size":     head + sumA + " -3 0644 a\n",
		"a size out of bound": head + sumA + " 99999999999 0644 a\n",
		"setuid":              head + sumA + " 3 4755 a\n",
		"writable by all":     head + sumA + " 3 0666 a\n",
		"a short mode":        head + sumA + " 3 644 a\n",
		"a long path":         head + member(strings.Repeat("a/", 120)+"a"),
		"too many members":    head + strings.Repeat(member("a"), 1025),
		"too long":            head + strings.Repeat("x", MaxManifestSize),
	} {
		if _, err := ParseManifest([]byte(text)); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func FuzzParseManifest(f *testing.F) {
	f.Add([]byte(good))
	f.Add([]byte("nox-mesh-floor-1 1.0.0 x86_64\n"))
	f.Add([]byte(strings.Replace(good, "LICENSE", "a/../b", 1)))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := ParseManifest(b)
		if err != nil {
			return
		}
		if !bytes.Equal(m.Encode(), b) {
			t.Fatalf("%q is read, but is written %q", b, m.Encode())
		}
		for _, f := range m.Members {
			if strings.HasPrefix(f.Path, "/") || strings.Contains("/"+f.Path+"/", "/../") {
				t.Fatalf("path %q leads out", f.Path)
			}
		}
	})
}
