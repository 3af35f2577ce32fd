package enrol

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/nox-mesh/nox-mesh/lab/fleet"
)

// A thing is what nobody shall find, and where it belongs.
type thing struct {
	name    string
	spelled [][]byte
	at      func(path string) bool
}

// spell is a secret in all the ways in which it could be written down.
func spell(secret []byte) (out [][]byte) {
	out = append(out, secret, []byte(hex.EncodeToString(secret)))
	for _, e := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		out = append(out, []byte(e.EncodeToString(secret)))
	}
	return out
}

// spellKey is a private key whole, and its number alone.
func spellKey(t *testing.T, der []byte) [][]byte {
	t.Helper()
	key, err := x509.ParsePKCS8PrivateKey(der)
	must(t, err)
	number, err := key.(*ecdsa.PrivateKey).Bytes()
	must(t, err)
	return append(spell(number), spell(der)[1:]...)
}

// TestE02SecretsAreNowhere walks a whole journey and then looks into everything it
// left, and into the arguments and the environment of every process while it ran.
func TestE02SecretsAreNowhere(t *testing.T) {
	s := raise(t, "", "")
	watch := watched(t, s.bin)
	var said bytes.Buffer
	tell := func(args ...string) {
		out, err := s.plane.Ask(t.Context(), args...)
		fmt.Fprintln(&said, out, err)
	}
	piped, filed := s.token(1, "--name", "web"), s.token(1, "--name", "db")
	web, db := s.host(), s.host()
	must(t, os.MkdirAll(filepath.Join(web.Root, "srv"), 0o755))
	for _, h := range []*fleet.Host{web, db} {
		must(t, h.Start(t.Context()))
	}
	ask := func(h *fleet.Host, stdin string, args ...string) error {
		out, err := h.Ask(t.Context(), stdin, args...)
		fmt.Fprintln(&said, out, err)
		return err
	}
	must(t, ask(web, piped.Text(), "enrol", "-"))
	file := filepath.Join(s.top, "token")
	must(t, os.WriteFile(file, []byte(filed.Text()+"\n"), 0o600))
	must(t, ask(db, "", "enrol", "--token-file", file))
	// What goes wrong is told of as well.
	if ask(web, strings.Replace(piped.Text(), ".", ".x", 1), "enrol", "-") == nil {
		t.Error("half a token enrols")
	}
	third := s.host()
	must(t, third.Start(t.Context()))
	if ask(third, piped.Text(), "enrol", "-") == nil {
		t.Error("a token enrols twice")
	}
	const declared = "kept-by-nobody-else-4711"
	doc, err := json.Marshal(map[string]any{"schema": 1, "name": "pass", "resources": []any{
		map[string]any{"id": "pass", "type": "file", "path": "/srv/pass", "content": declared, "mode": "0600", "secret": true},
	}})
	must(t, err)
	passwords := filepath.Join(s.top, "pass.json")
	must(t, os.WriteFile(passwords, doc, 0o600))
	tell("declare", "pass", passwords, "--on", "node=web")
	must(t, os.Remove(passwords))
	s.reached(web, "web", filepath.Join(web.Root, "srv/pass"), declared)
	for _, args := range [][]string{{"nodes", "--json"}, {"show", "web", "--json"}, {"token", "list", "--json"}, {"events"}, {"status", "--json"},
		{"token", "revoke", filed.ID}, {"revoke", "db"}, {"undeclare", "pass"}} {
		tell(args...)
	}
	for _, args := range [][]string{{"status", "--json"}, {"owned", "--json"}, {"history", "--json"}, {"profile", "--json"}} {
		must(t, ask(web, "", args...))
	}
	ids := map[*fleet.Host]identity{}
	for _, h := range []*fleet.Host{web, db} {
		if ids[h], err = identityOf(h); err != nil {
			t.Fatal(err)
		}
	}
	for _, h := range []*fleet.Host{web, db, third} {
		must(t, h.Stop(15))
	}
	must(t, s.plane.Stop(15))
	seen := watch()

	store := filepath.Join(s.plane.Root, "var/lib/nox-mesh-controller/state.db")
	only := func(paths ...string) func(string) bool {
		return func(p string) bool {
			for _, o := range paths {
				if p == o {
					return true
				}
			}
			return false
		}
	}
	things := []thing{
		{"the secret of the token that was piped", spellToken(t, piped.Text()), only()},
		{"the secret of the token from a file", spellToken(t, filed.Text()), only()},
		{"the private key of web", spellKey(t, ids[web].Key), only(web.Layout().HostIdentity())},
		{"the private key of db", spellKey(t, ids[db].Key), only(db.Layout().HostIdentity())},
		{"the mesh root's private key", spellKey(t, rootKey(t, store)), only(store)},
		{"the declared secret", [][]byte{[]byte(declared)}, only(store)},
	}
	// The net has no holes: where they belong they are found.
	found := map[string]bool{}
	look := func(where string, b []byte) {
		for _, x := range things {
			for _, way := range x.spelled {
				if !bytes.Contains(b, way) {
					continue
				}
				found[x.name] = true
				if !x.at(where) {
					t.Errorf("%s is in %s", x.name, where)
				}
			}
		}
	}
	files := 0
	must(t, filepath.WalkDir(s.top, func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		files++
		b, err := os.ReadFile(p)
		look(p, b)
		return err
	}))
	look("what the commands said", said.Bytes())
	processes := 0
	for what, b := range seen {
		processes++
		look(what, []byte(b))
	}
	for _, x := range things[2:5] {
		if !found[x.name] {
			t.Errorf("%s is not even where it belongs: this test does not know how it is written", x.name)
		}
	}
	if files < 20 || processes < 10 {
		t.Errorf("only %d files and %d arguments and environments were looked at", files, processes)
	}
	t.Logf("%d files, %d arguments and environments of processes", files, processes)
}

// spellToken is the secret part of a token, as it is and as what it stands for.
func spellToken(t *testing.T, text string) [][]byte {
	t.Helper()
	part := strings.Split(text, ".")[2]
	seed, err := base64.RawURLEncoding.DecodeString(part)
	must(t, err)
	return append(spell(seed), []byte(part))
}

// rootKey reads the mesh root's private key out of the state.
func rootKey(t *testing.T, store string) []byte {
	t.Helper()
	db, err := bbolt.Open(store, 0o600, &bbolt.Options{ReadOnly: true})
	must(t, err)
	defer db.Close()
	var mesh struct {
		RootKey []byte `json:"root_key"`
	}
	must(t, db.View(func(tx *bbolt.Tx) error {
		return json.Unmarshal(tx.Bucket([]byte("mesh")).Get([]byte("mesh")), &mesh)
	}))
	return mesh.RootKey
}

// watched looks at the arguments and the environment of every process whose
// program is in dir, again and again, until the function it returns is called.
func watched(t *testing.T, dir string) (end func() map[string]string) {
	t.Helper()
	seen := map[string]string{}
	stop := make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		tick := time.NewTicker(3 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
			}
			exes, _ := filepath.Glob("/proc/[0-9]*/exe")
			for _, exe := range exes {
				if program, err := os.Readlink(exe); err != nil || !strings.HasPrefix(program, dir+"/") {
					continue
				}
				for _, what := range []string{"cmdline", "environ"} {
					path := filepath.Join(filepath.Dir(exe), what)
					if b, err := os.ReadFile(path); err == nil && len(b) > 0 {
						seen[path+" "+string(bytes.ReplaceAll(b, []byte{0}, []byte{' '}))] = string(b)
					}
				}
			}
		}
	})
	var once sync.Once
	end = func() map[string]string {
		once.Do(func() { close(stop) })
		all.Wait()
		return seen
	}
	t.Cleanup(func() { end() })
	return end
}
