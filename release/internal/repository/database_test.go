package repository

import (
	"archive/tar"
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

func desc(name, version string) string {
	return fmt.Sprintf("%%FILENAME%%\n%s-%s-any.pkg.tar.zst\n\n%%NAME%%\n%[1]s\n\n%%VERSION%%\n%[2]s\n\n%%CSIZE%%\n7\n\n"+
		"%%SHA256SUM%%\n%[3]s\n\n%%PGPSIG%%\nAAAA\n\n%%ARCH%%\nany\n\n%%BUILDDATE%%\n1700000000\n\n",
		name, version, strings.Repeat("ab", 32))
}

// archive packs members, each a name and its content in turn.
func archive(t testing.TB, members ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	z, err := zstd.NewWriter(&b)
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(z)
	for i := 0; i < len(members); i += 2 {
		h := &tar.Header{Name: members[i], Size: int64(len(members[i+1])), Typeflag: tar.TypeReg}
		if strings.HasSuffix(h.Name, "/") {
			h.Typeflag = tar.TypeDir
		}
		if strings.HasSuffix(h.Name, "link") {
			h.Typeflag, h.Linkname, h.Size = tar.TypeSymlink, "/etc/passwd", 0
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if h.Size > 0 {
			if _, err := w.Write([]byte(members[i+1])); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestADatabaseIsReadStrictly(t *testing.T) {
	good := desc("a", "1-1")
	for name, c := range map[string]struct {
		members []string
		want    string // "" is accepted
	}{
		"good":            {[]string{"a-1-1/", "", "a-1-1/desc", good}, ""},
		"without folder":  {[]string{"a-1-1/desc", good}, ""},
		"empty":           {nil, ""},
		"no desc":         {[]string{"a-1-1/", ""}, "not whole"},
		"desc twice":      {[]string{"a-1-1/desc", good, "a-1-1/desc", good}, "there twice"},
		"name twice":      {[]string{"a-1-1/desc", good, "a-2-1/desc", desc("a", "2-1")}, `package "a" is there twice`},
		"another folder":  {[]string{"a-2-1/desc", good}, "do not fit"},
		"files in db":     {[]string{"a-1-1/desc", good, "a-1-1/files", "%FILES%\n"}, "does not belong"},
		"a link":          {[]string{"a-1-1/link", ""}, "does not belong"},
		"a deep file":     {[]string{"a-1-1/b/desc", good}, "does not belong"},
		"leading out":     {[]string{"../desc", good}, "do not fit"},
		"a field twice":   {[]string{"a-1-1/desc", good + "%NAME%\na\n\n"}, "%NAME% is there twice"},
		"a field unknown": {[]string{"a-1-1/desc", good + "%WHAT%\na\n\n"}, "not a field"},
		"a value missing": {[]string{"a-1-1/desc", strings.Replace(good, "%ARCH%\nany\n", "%ARCH%\n", 1)}, "empty value"},
		"no end":          {[]string{"a-1-1/desc", strings.TrimSuffix(good, "\n")}, "does not end"},
		"no signature":    {[]string{"a-1-1/desc", strings.Replace(good, "%PGPSIG%\nAAAA\n\n", "", 1)}, "0 values of %PGPSIG%"},
		"bad signature":   {[]string{"a-1-1/desc", strings.Replace(good, "AAAA", "A\u00e4", 1)}, "not a signature in base64"},
		"a path":          {[]string{"a-1-1/desc", strings.Replace(good, "a-1-1-any", "../a-1-1-any", 1)}, "is not NAME-VERSION"},
		"size":            {[]string{"a-1-1/desc", strings.Replace(good, "\n7\n", "\n07\n", 1)}, `"07" is not a number`},
		"digest":          {[]string{"a-1-1/desc", strings.Replace(good, "abab", "ABAB", 1)}, "not a SHA-256"},
		"control bytes":   {[]string{"a-1-1/desc", good + "%DESC%\n\x1b[2J\n\n"}, "not plain text"},
	} {
		_, err := readDatabase(archive(t, c.members...), false)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	for name, files := range map[string]string{
		"not sorted": "%FILES%\nb\na\n", "twice": "%FILES%\na\na\n", "an empty line": "%FILES%\n\na\n", "no end": "%FILES%\na", "no head": "a\n",
	} {
		if _, err := readDatabase(archive(t, "a-1-1/desc", good, "a-1-1/files", files), true); err == nil {
			t.Errorf("files: %s: accepted", name)
		}
	}
	whole := archive(t, "a-1-1/desc", good)
	for n := range len(whole) {
		if _, err := readDatabase(whole[:n], false); err == nil {
			t.Errorf("cut at %d of %d: accepted", n, len(whole))
		}
	}
	if _, err := readDatabase(append(whole, 'x'), false); err == nil {
		t.Error("trailing bytes: accepted")
	}
}

func FuzzReadDatabase(f *testing.F) {
	f.Add(archive(f, "a-1-1/", "", "a-1-1/desc", desc("a", "1-1"), "a-1-1/files", "%FILES%\nusr/\n"))
	f.Add(archive(f))
	f.Fuzz(func(t *testing.T, b []byte) {
		entries, err := readDatabase(b, true)
		if err != nil {
			return
		}
		again, err := writeDatabase(entries, true)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := readDatabase(again, true); err != nil {
			t.Errorf("what was read cannot be written: %v", err)
		}
	})
}

func FuzzParseEntry(f *testing.F) {
	f.Add("a-1-1", []byte(desc("a", "1-1")), []byte("%FILES%\nusr/\n"))
	f.Fuzz(func(t *testing.T, folder string, desc, files []byte) {
		if e, err := parseEntry(folder, desc, files); err == nil && (e.folder() != folder || e.Name == "" || strings.Contains(e.File, "/")) {
			t.Errorf("%q: %+v", folder, e.Package)
		}
	})
}
