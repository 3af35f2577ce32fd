package arch

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A signer is a key of gpg's in a keyring that pacman trusts.
type signer struct {
	t    testing.TB
	home string
	key  string
}

// newSigner makes a key. Its folder has a short name: the agent's socket is in it.
func newSigner(t testing.TB) *signer {
	t.Helper()
	home, err := os.MkdirTemp("", "nox-gpg-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		must(t, "/", nil, "gpgconf", "--homedir", home, "--kill", "all")
		_ = os.RemoveAll(home)
	})
	s := &signer{t: t, home: home}
	s.gpg("--passphrase", "", "--quick-generate-key", "nox-mesh test <test@nox-mesh.invalid>", "ed25519", "sign", "never")
	for line := range strings.Lines(s.gpg("--with-colons", "--list-keys")) {
		if f := strings.Split(line, ":"); f[0] == "fpr" {
			s.key = f[9]
		}
	}
	return s
}

func (s *signer) gpg(args ...string) string {
	s.t.Helper()
	return must(s.t, "/", nil, "gpg", append([]string{"--homedir", s.home, "--batch", "--yes", "--quiet"}, args...)...)
}

func (s *signer) sign(paths ...string) {
	s.t.Helper()
	for _, p := range paths {
		s.gpg("--output", p+".sig", "--detach-sign", p)
	}
}

// repository makes a signed repository of the packages with the real repo-add,
// in their folder.
func (s *signer) repository(packages ...string) {
	s.t.Helper()
	dir := filepath.Dir(packages[0])
	args := append([]string{"--sign", "--key", s.key, filepath.Join(dir, "nox-mesh.db.tar.gz")}, packages...)
	must(s.t, dir, []string{"GNUPGHOME=" + s.home}, "repo-add", args...)
}

// places are where pacman can have a repository from.
func places(t *testing.T, dir string) map[string]string {
	t.Helper()
	server := httptest.NewServer(http.FileServer(http.Dir(dir)))
	t.Cleanup(server.Close)
	if !strings.HasPrefix(server.URL, "http://127.0.0.1:") {
		t.Fatalf("the server is at %s", server.URL)
	}
	return map[string]string{"file": "", "file URL": "file://" + dir, "http": server.URL}
}
