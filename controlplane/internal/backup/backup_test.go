package backup

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"filippo.io/age"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// sample is a backup of four files, and what is in them.
func sample() (*Manifest, map[string]string) {
	m := &Manifest{Made: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), By: "1.0.0", Mesh: "m", Pin: "p", Epoch: 3,
		Nodes: []Node{{ID: "1", Name: "web", State: "enrolled"}}, Modules: []string{"motd"}}
	files := map[string]string{}
	add := func(name, text string) {
		sum := sha256.Sum256([]byte(text))
		f := File{Name: name, Size: int64(len(text)), SHA256: hex.EncodeToString(sum[:])}
		if name == "blob" {
			f = Blob(f.SHA256, f.Size)
		}
		m.Files = append(m.Files, f)
		files[f.Name] = text
	}
	add(State, strings.Repeat("the key of the mesh ", 5000))
	add(Founded, `{"mesh":"m"}`)
	add("blob", strings.Repeat("content ", 20_000))
	add("blob", "")
	return m, files
}

func opener(files map[string]string) func(File) (io.ReadCloser, error) {
	return func(f File) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(files[f.Name])), nil }
}

func written(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	m, files := sample()
	if err := Write(&b, m, opener(files)); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// keyed is a lock with a key pair: it costs no scrypt.
func keyed(t *testing.T) Lock {
	t.Helper()
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	l, err := Recipients([]string{id.Recipient().String()})
	if err != nil {
		t.Fatal(err)
	}
	opens, err := Identities(strings.NewReader("# a comment\n" + id.String() + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	l.identities = opens.identities
	return l
}

func sealed(t *testing.T, l Lock, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := l.Seal(&out)
	if err == nil {
		_, err = w.Write(b)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// readAll returns what take was given.
func readAll(r io.Reader) (map[string]string, *Manifest, error) {
	got := map[string]string{}
	m, err := Read(r, func(*Manifest) error { return nil }, func(f File, r io.Reader) error {
		b, err := io.ReadAll(r)
		got[f.Name] = string(b)
		return err
	})
	return got, m, err
}

func openAll(l Lock, b []byte) error {
	r, err := l.Open(bytes.NewReader(b))
	if err == nil {
		_, _, err = readAll(r)
	}
	return err
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	m, want := sample()
	l := keyed(t)
	file := sealed(t, l, written(t))
	if bytes.Contains(file, []byte("the key of the mesh")) || bytes.Contains(file, []byte("motd")) {
		t.Error("it can be read without a key")
	}
	r, err := l.Open(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	got, read, err := readAll(r)
	if err != nil || len(got) != len(want) || read.Mesh != m.Mesh || read.Epoch != 3 || !read.Made.Equal(m.Made) || read.Nodes[0] != m.Nodes[0] {
		t.Fatalf("%d files, %+v, %v", len(got), read, err)
	}
	for name, text := range want {
		if got[name] != text {
			t.Errorf("%q is another", name)
		}
	}
	if blobs, bytes := read.Content(); blobs != 2 || bytes != 160_000 {
		t.Errorf("%d blobs, %d bytes", blobs, bytes)
	}
	// What is not taken is read all the same.
	r, _ = l.Open(bytes.NewReader(file))
	if _, err := Read(r, func(*Manifest) error { return nil }, func(File, io.Reader) error { return nil }); err != nil {
		t.Error(err)
	}
}

func refused(t *testing.T, what string, err error, word string) {
	t.Helper()
	if fault.KindOf(err) != fault.Refused || fault.RemedyOf(err) == "" || !strings.Contains(err.Error(), word) {
		t.Errorf("%s: %v (kind %d; %s), want %q", what, err, fault.KindOf(err), fault.RemedyOf(err), word)
	}
}

// boundaries are where each member's header and content begin and end.
func boundaries(t *testing.T, b []byte) []int {
	t.Helper()
	var at []int
	src := bytes.NewReader(b)
	for r := tar.NewReader(src); ; {
		h, err := r.Next()
		if err == io.EOF {
			return append(at, len(b)-1024, len(b)-512)
		}
		if err != nil {
			t.Fatal(err)
		}
		body := len(b) - src.Len()
		at = append(at, body-512, body, body+int(h.Size))
	}
}

func TestAFileThatIsCutIsRefused(t *testing.T) {
	open := written(t)
	l := keyed(t)
	cuts := boundaries(t, open)
	if len(cuts) != 3*5+2 {
		t.Fatalf("%d boundaries", len(cuts))
	}
	r := rand.New(rand.NewPCG(1, 1))
	for range 60 {
		cuts = append(cuts, r.IntN(len(open)))
	}
	for _, n := range cuts {
		what := fmt.Sprintf("cut at %d of %d", n, len(open))
		if n < len(open)-1024 || n%512 != 0 { // what closes it says the rest
			_, _, err := readAll(bytes.NewReader(open[:n]))
			refused(t, what, err, "damaged")
		}
		// Cut by who had the key.
		if n < len(open)-1024 {
			refused(t, what+", closed", openAll(l, sealed(t, l, open[:n])), "damaged")
		}
	}
	whole := sealed(t, l, open)
	for range 100 {
		n := r.IntN(len(whole))
		err := openAll(l, whole[:n])
		if fault.KindOf(err) != fault.Refused {
			t.Errorf("cut at %d of %d, when it was closed: %v", n, len(whole), err)
		}
	}
	for _, n := range []int{0, 1, len(whole) - 1} {
		refused(t, fmt.Sprint("closed and cut at ", n), openAll(l, whole[:n]), "damaged")
	}
	if err := openAll(l, append(bytes.Clone(whole), 0)); fault.KindOf(err) != fault.Refused {
		t.Errorf("a byte behind it: %v", err)
	}
}

func TestAFlippedBitIsRefused(t *testing.T) {
	l := keyed(t)
	whole := sealed(t, l, written(t))
	r := rand.New(rand.NewPCG(2, 2))
	for range 300 {
		bad := bytes.Clone(whole)
		bad[r.IntN(len(bad))] ^= 1 << r.IntN(8)
		if err := openAll(l, bad); fault.KindOf(err) != fault.Refused {
			t.Fatalf("%v", err)
		}
	}
}

// Whoever has the key may have made any tar; only that of the manifest is read.
func TestOnlyWhatTheManifestSaysIsRead(t *testing.T) {
	type member struct {
		tar.Header
		text string
	}
	m, files := sample()
	m.Format, m.Version = format, Version
	manifest, _ := json.Marshal(m)
	good := []member{{tar.Header{Name: manifestName}, string(manifest)}}
	for _, f := range m.Files {
		good = append(good, member{tar.Header{Name: f.Name}, files[f.Name]})
	}
	pack := func(ms []member) []byte {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		for _, x := range ms {
			h := x.Header
			if h.Typeflag == 0 {
				h.Typeflag = tar.TypeReg
			}
			h.Size, h.Mode = int64(len(x.text)), 0o600
			if err := w.WriteHeader(&h); err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(w, x.text); err != nil {
				t.Fatal(err)
			}
		}
		w.Close()
		return b.Bytes()
	}
	if _, _, err := readAll(bytes.NewReader(pack(good))); err != nil {
		t.Fatalf("the good one: %v", err)
	}
	with := func(change func(ms []member) []member) []byte { return pack(change(append([]member(nil), good...))) }
	says := func(change func(m *Manifest)) []byte {
		c := *m
		c.Files = append([]File(nil), m.Files...)
		change(&c)
		b, _ := json.Marshal(c)
		return with(func(ms []member) []member { ms[0].text = string(b); return ms })
	}
	for what, b := range map[string][]byte{
		"nothing":         nil,
		"an empty tar":    pack(nil),
		"no manifest":     pack(good[1:]),
		"no JSON":         with(func(ms []member) []member { ms[0].text = "x"; return ms }),
		"more behind it":  with(func(ms []member) []member { ms[0].text += "{}"; return ms }),
		"a file more":     with(func(ms []member) []member { return append(ms, member{tar.Header{Name: "x"}, "x"}) }),
		"a file less":     with(func(ms []member) []member { return ms[:len(ms)-1] }),
		"another order":   with(func(ms []member) []member { ms[1], ms[2] = ms[2], ms[1]; return ms }),
		"another content": with(func(ms []member) []member { ms[2].text = `{"mesh":"x"}`; return ms }),
		"a byte more":     with(func(ms []member) []member { ms[2].text += "x"; return ms }),
		"a link": with(func(ms []member) []member {
			ms[4].Header = tar.Header{Name: ms[4].Name, Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}
			return ms
		}),
		"trailing bytes":         append(pack(good), "x"...),
		"no state":               says(func(m *Manifest) { m.Files = m.Files[1:] }),
		"a name out of it":       says(func(m *Manifest) { m.Files[2].Name = "../../etc/passwd" }),
		"a digest that is none":  says(func(m *Manifest) { m.Files[2].Name = blobPrefix + "../" + strings.Repeat("0", 61) }),
		"a digest in upper case": says(func(m *Manifest) { m.Files[2].Name = strings.ToUpper(m.Files[2].Name) }),
		"one twice":              says(func(m *Manifest) { m.Files[3] = m.Files[2] }),
		"a negative size":        says(func(m *Manifest) { m.Files[2].Size = -1 }),
		"a large mesh.json":      says(func(m *Manifest) { m.Files[1].Size = 1 << 30 }),
		"epoch 0":                says(func(m *Manifest) { m.Epoch = 0 }),
		"another format":         says(func(m *Manifest) { m.Format = "x" }),
		"version 0":              says(func(m *Manifest) { m.Version = 0 }),
	} {
		_, _, err := readAll(bytes.NewReader(b))
		refused(t, what, err, "damaged, or no backup")
	}
	_, _, err := readAll(bytes.NewReader(says(func(m *Manifest) { m.Version = 2; m.Epoch = 0 })))
	refused(t, "a newer format", err, "format 2")
	if !strings.Contains(fault.RemedyOf(err), "as new as") {
		t.Errorf("%s", fault.RemedyOf(err))
	}
}

func TestAnErrorOfTheCallersOrTheSystemsIsThat(t *testing.T) {
	b := written(t)
	own := errors.New("the disk is full")
	if _, err := Read(bytes.NewReader(b), func(*Manifest) error { return own }, nil); err != own {
		t.Errorf("%v", err)
	}
	if _, err := Read(bytes.NewReader(b), func(*Manifest) error { return nil }, func(File, io.Reader) error { return own }); err != own {
		t.Errorf("%v", err)
	}
	l := keyed(t)
	whole := sealed(t, l, b)
	broken := io.MultiReader(bytes.NewReader(whole[:len(whole)/2]), failing{errors.New("input/output error")})
	r, err := l.Open(broken)
	if err == nil {
		_, _, err = readAll(r)
	}
	if fault.KindOf(err) != fault.Failed || !strings.Contains(err.Error(), "input/output error") {
		t.Errorf("%v", err)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestWhatChangedWhileItWasReadIsNoBackup(t *testing.T) {
	m, files := sample()
	for _, f := range m.Files {
		if files[f.Name] == "" {
			continue
		}
		bad := map[string]string{}
		for k, v := range files {
			bad[k] = v
		}
		bad[f.Name] = "x" + bad[f.Name][1:]
		if err := Write(io.Discard, m, opener(bad)); err == nil || fault.RemedyOf(err) == "" && f.Name != State && f.Name != Founded {
			t.Errorf("%q: %v", f.Name, err)
		}
	}
}

func TestThePassphraseOpensAndNoOther(t *testing.T) {
	l, err := Passphrase([]byte("correct horse"))
	if err != nil || !l.Opens() {
		t.Fatal(err)
	}
	file := sealed(t, l, written(t))
	if err := openAll(l, file); err != nil {
		t.Error(err)
	}
	other, err := Passphrase([]byte("correct horsf"))
	if err != nil {
		t.Fatal(err)
	}
	refused(t, "another passphrase", openAll(other, file), "another passphrase")
	refused(t, "a key", openAll(keyed(t), file), "another passphrase or key")
	refused(t, "a passphrase for a key's", openAll(l, sealed(t, keyed(t), written(t))), "another passphrase or key")
}

func TestAFileAsksForNoMoreThanItsReaderPays(t *testing.T) {
	l, err := Passphrase([]byte("x"))
	if err != nil {
		t.Fatal(err)
	}
	greedy := "age-encryption.org/v1\n-> scrypt " + strings.Repeat("A", 22) + " 30\n" + strings.Repeat("A", 43) + "\n--- " + strings.Repeat("A", 43) + "\n"
	if err := openAll(l, []byte(greedy)); fault.KindOf(err) != fault.Refused {
		t.Errorf("%v", err)
	}
}

func TestKeysThatAreNone(t *testing.T) {
	if _, err := Recipients([]string{"age1x"}); fault.KindOf(err) != fault.Usage || fault.RemedyOf(err) == "" {
		t.Errorf("%v", err)
	}
	const secret = "AGE-SECRET-KEY-1NOTONE"
	if _, err := Identities(strings.NewReader(secret)); fault.KindOf(err) != fault.Usage || strings.Contains(err.Error(), "NOTONE") {
		t.Errorf("%v", err)
	}
}

// TestTheToolOfAgeOpensIt reads a backup without us.
func TestTheToolOfAgeOpensIt(t *testing.T) {
	tool, err := exec.LookPath("age")
	if err != nil {
		t.Skip("age is not here")
	}
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	l, err := Recipients([]string{id.Recipient().String()})
	if err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte(id.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	c := exec.Command("sh", "-c", `"$0" -d -i "$1" | tar -t`, tool, key)
	c.Stdin = bytes.NewReader(sealed(t, l, written(t)))
	if out, err := c.CombinedOutput(); err != nil || !strings.HasPrefix(string(out), "manifest.json\nstate.db\nmesh.json\ncontent/sha256/") {
		t.Errorf("%v\n%s", err, out)
	}
}
