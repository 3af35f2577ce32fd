package image

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// serve is a registry with one repository, "web": a server of files by digest,
// which is all of the protocol that is asked for here. A registry of others is
// asked in lab/oracle/bundle.
func serve(t *testing.T, f files, before func(http.ResponseWriter, *http.Request) bool) (host string) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if before != nil && before(w, r) {
			return
		}
		name := strings.TrimPrefix(r.URL.Path, "/v2/web/")
		kind, d, _ := strings.Cut(name, "/")
		b, ok := f["blobs/sha256/"+strings.TrimPrefix(d, "sha256:")]
		if !ok || kind != "manifests" && kind != "blobs" {
			http.NotFound(w, r)
			return
		}
		if kind == "manifests" {
			w.Header().Set("Content-Type", mediaTypeIn(b))
		}
		w.Header().Set("Content-Length", fmt.Sprint(len(b)))
		w.Header().Set("Docker-Content-Digest", d)
		w.Write(b)
	}))
	t.Cleanup(s.Close)
	t.Setenv("REGISTRY_AUTH_FILE", filepath.Join(t.TempDir(), "none"))
	return strings.TrimPrefix(s.URL, "http://")
}

func mediaTypeIn(b []byte) string {
	_, after, _ := bytes.Cut(b, []byte(`"mediaType":"`))
	name, _, _ := bytes.Cut(after, []byte(`"`))
	return string(name)
}

func TestAnImageInARegistry(t *testing.T) {
	f := newLayout()
	d := f.image("linux/amd64")
	index := f.nested(on(f.image("linux/arm64"), "linux/arm64"), on(d, "linux/amd64"))
	host := serve(t, f, nil)
	for _, at := range []digest.Digest{d.Digest, index.Digest} {
		i := mustRead(t, "docker://"+host+"/web@"+string(at))
		if i.Digest != d.Digest || !bytes.Equal(i.Manifest, f["blobs/sha256/"+d.Digest.Encoded()]) {
			t.Errorf("%s", i.Manifest)
		}
		if got := contents(t, i); got[2] != layerFor("linux/amd64") {
			t.Errorf("%q", got)
		}
	}
	_, err := readRef(t, "docker://"+host+"/web@"+someDigest)
	refused(t, err, "it is not there")
	_, err = readRef(t, "docker://"+host+"/WEB@"+string(d.Digest))
	refused(t, err, "invalid reference")
}

// A registry is no more believed than a file.
func TestARegistryThatLies(t *testing.T) {
	f := newLayout()
	d := f.image("linux/amd64")
	manifest := f["blobs/sha256/"+d.Digest.Encoded()]
	var config digest.Digest
	for name, b := range f {
		if string(b) == configOf("linux/amd64", 2) {
			config = digest.NewDigestFromEncoded(digest.SHA256, strings.TrimPrefix(name, "blobs/sha256/"))
		}
	}
	for name, c := range map[string]struct {
		path, want string
		body       []byte
	}{
		"another manifest":      {"/manifests/" + string(d.Digest), "its content is sha256:", append(manifest[:len(manifest)-1:len(manifest)-1], ' ')},
		"another configuration": {"/blobs/" + string(config), "its content is sha256:", bytes.ToUpper([]byte(configOf("linux/amd64", 2)))},
		"more of a manifest":    {"/manifests/" + string(d.Digest), "", append(manifest[:len(manifest):len(manifest)], make([]byte, maxDocument)...)},
	} {
		t.Run(name, func(t *testing.T) {
			host := serve(t, f, func(w http.ResponseWriter, r *http.Request) bool {
				if !strings.HasSuffix(r.URL.Path, c.path) {
					return false
				}
				w.Header().Set("Content-Type", d.MediaType)
				w.Header().Set("Content-Length", fmt.Sprint(len(c.body)))
				w.Header().Set("Docker-Content-Digest", r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:])
				w.Write(c.body)
				return true
			})
			_, err := readRef(t, "docker://"+host+"/web@"+string(d.Digest))
			refused(t, err, c.want)
		})
	}
}

func TestLoginsAreThoseOfOthers(t *testing.T) {
	f := newLayout()
	d := f.image("linux/amd64")
	const secret = "hunter2"
	asked := 0
	host := serve(t, f, func(w http.ResponseWriter, r *http.Request) bool {
		base := "http://" + r.Host
		user, password, _ := r.BasicAuth()
		switch {
		case r.URL.Path == "/token" && user == "me" && password == secret:
			asked++
			fmt.Fprint(w, `{"token": "a-token"}`)
		case r.URL.Path == "/token":
			w.WriteHeader(http.StatusUnauthorized)
		case r.Header.Get("Authorization") != "Bearer a-token":
			w.Header().Set("WWW-Authenticate", `Bearer realm="`+base+`/token",service="s",scope="repository:web:pull"`)
			w.WriteHeader(http.StatusUnauthorized)
		default:
			return false
		}
		return true
	})
	ref := "docker://" + host + "/web@" + string(d.Digest)
	_, err := readRef(t, ref)
	if fault.KindOf(err) != fault.Failed || asked != 0 || !strings.Contains(fault.RemedyOf(err), `"podman login `+host+`"`) {
		t.Errorf("without a login: %v", err)
	}
	login := func(key string) string {
		auth := base64.StdEncoding.EncodeToString([]byte("me:" + secret))
		return fmt.Sprintf(`{"auths": {%q: {"auth": %q}}}`, key, auth)
	}
	for _, key := range []string{host, host + "/web"} {
		file := filepath.Join(t.TempDir(), "auth.json")
		if err := os.WriteFile(file, []byte(login(key)), 0o600); err != nil {
			t.Fatal(err)
		}
		t.Setenv("REGISTRY_AUTH_FILE", file)
		if i := mustRead(t, ref); i.Digest != d.Digest {
			t.Error(i.Digest)
		}
	}
	if asked == 0 {
		t.Error("nobody was asked")
	}
	// Docker's file, where podman has none.
	docker := t.TempDir()
	if err := os.WriteFile(filepath.Join(docker, "config.json"), []byte(login(host)), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"REGISTRY_AUTH_FILE": "", "XDG_RUNTIME_DIR": "", "XDG_CONFIG_HOME": t.TempDir(), "DOCKER_CONFIG": docker} {
		t.Setenv(name, value)
	}
	mustRead(t, ref)
	broken := filepath.Join(t.TempDir(), "auth.json")
	if err := os.WriteFile(broken, []byte(login(host)[:20]+secret), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("REGISTRY_AUTH_FILE", broken)
	_, err = readRef(t, ref)
	refused(t, err, "cannot read the logins in")
	if strings.Contains(err.Error(), secret) {
		t.Errorf("the error tells a secret: %v", err)
	}
}

func TestARegistryThatIsNotThere(t *testing.T) {
	host := serve(t, newLayout(), nil)
	s := httptest.NewServer(http.NotFoundHandler())
	s.Close()
	_, err := readRef(t, "docker://"+strings.TrimPrefix(s.URL, "http://")+"/web@"+someDigest)
	if fault.KindOf(err) != fault.Failed || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("%v (the other is at %s)", err, host)
	}
}

func TestOnlyHereThereIsNoTLS(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost": true, "localhost:5000": true, "127.0.0.1:5000": true, "127.8.9.1": true, "[::1]:5000": true,
		"example.test": false, "localhost.example.test": false, "10.0.0.1:5000": false, "127.0.0.1.example.test": false, "[::2]": false,
	} {
		if isHere(host) != want {
			t.Errorf("%s: %v", host, !want)
		}
	}
}

func TestDockersOwnRegistryHasManyNames(t *testing.T) {
	got := fmt.Sprint(loginKeys("registry-1.docker.io", "docker.io/library/web"))
	if got != "[docker.io/library/web docker.io/library docker.io https://index.docker.io/v1/]" {
		t.Error(got)
	}
}
