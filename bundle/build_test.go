package bundle

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

func TestBuildRefusesWhatTheReaderWouldRefuse(t *testing.T) {
	k := newKey(t)
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	disk := errors.New("i/o error")
	for name, c := range map[string]struct {
		change func(*Spec)
		text   string
		kind   fault.Kind
	}{
		"no signer":          {func(s *Spec) { s.Signers = nil }, "nobody signs", fault.Refused},
		"a key twice":        {func(s *Spec) { s.Signers = append(s.Signers, k) }, "sign twice", fault.Refused},
		"no name":            {func(s *Spec) { s.Name = "" }, "is no name", fault.Refused},
		"name in upper case": {func(s *Spec) { s.Name = "Site" }, "is no name", fault.Refused},
		"version":            {func(s *Spec) { s.Version = "1/2" }, "is no version", fault.Refused},
		"architecture":       {func(s *Spec) { s.Architecture = "x86-64" }, "is no architecture", fault.Refused},
		"minimum host":       {func(s *Spec) { s.MinimumHost = "-1" }, "is no version of a host", fault.Refused},
		"no declaration":     {func(s *Spec) { s.Declarations, s.Payload = nil, nil }, "no declaration", fault.Refused},
		"T-35 dangling need": {func(s *Spec) {
			s.Declarations[0].Needs = append(s.Declarations[0].Needs, digest.FromString("gone"))
		}, "not in the payload", fault.Refused},
		"T-35 dangling payload": {func(s *Spec) { s.Payload = append(s.Payload, blobOf("idle", []byte("idle"))) }, "needed by no declaration", fault.Refused},
		"title twice":           {func(s *Spec) { s.Payload[0].Title = "large" }, "there twice", fault.Refused},
		"no title":              {func(s *Spec) { s.Payload[0].Title = "" }, "no title", fault.Refused},
		"media type":            {func(s *Spec) { s.Payload[0].MediaType = "text/plain" }, "is of type", fault.Refused},
		"size too small":        {func(s *Spec) { s.Payload[3].Size-- }, "bytes that were announced", fault.Refused},
		"size too large":        {func(s *Spec) { s.Payload[3].Size++ }, "bytes that were announced", fault.Refused},
		"8 GiB":                 {func(s *Spec) { s.Payload[3].Size = maxMember + 1 }, "at most", fault.Refused},
		"no way to open it":     {func(s *Spec) { s.Payload[3].Open = nil }, "cannot be opened", fault.Refused},
		"a root that is not":    {func(s *Spec) { s.Roots = [][]byte{[]byte("x")} }, "release root", fault.Refused},
		"declaration too large": {func(s *Spec) {
			s.Declarations[0].Bytes = make([]byte, maxDeclarationBytes+1)
		}, "of declarations", fault.Refused},
		"content changed meanwhile": {func(s *Spec) {
			s.Payload[3].Open = func() (io.ReadCloser, error) {
				return io.NopCloser(strings.NewReader(strings.Repeat("NOX\n", 25))), nil
			}
		}, "digest mismatch", fault.Refused},
		"content that cannot be read": {func(s *Spec) {
			s.Payload[3].Open = func() (io.ReadCloser, error) { return nil, disk }
		}, "i/o error", fault.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			spec := specOf(100, k)
			c.change(&spec)
			dir := t.TempDir()
			path := filepath.Join(dir, "b.tar")
			aBundleFile(t, path, 0o600)
			before := must[[]byte](t)(os.ReadFile(path))
			_, err := Build(ctx, path, spec)
			if err == nil || fault.KindOf(err) != c.kind || !strings.Contains(err.Error(), c.text) {
				t.Errorf("got %v, want %q", err, c.text)
			}
			if b, _ := os.ReadFile(path); !bytes.Equal(b, before) {
				t.Error("the file was replaced")
			}
			if es, _ := os.ReadDir(dir); len(es) != 1 {
				t.Errorf("%d files are left", len(es))
			}
		})
	}
	dir := t.TempDir()
	if _, err := Build(cancelled, filepath.Join(dir, "b"), specOf(100, k)); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if es, _ := os.ReadDir(dir); len(es) != 0 {
		t.Errorf("%d files are left", len(es))
	}
}

// foreignSigner is a key somewhere else, which signs at random.
type foreignSigner struct{ k *ecdsa.PrivateKey }

func (f foreignSigner) Public() crypto.PublicKey { return f.k.Public() }
func (f foreignSigner) Sign(r io.Reader, d []byte, o crypto.SignerOpts) ([]byte, error) {
	return f.k.Sign(r, d, o)
}

func TestAKeyElsewhereSignsToo(t *testing.T) {
	k := newKey(t)
	a, b := bytesOf(t, specOf(100, foreignSigner{k})), bytesOf(t, specOf(100, foreignSigner{k}))
	if bytes.Equal(a, b) {
		t.Error("the signatures are not random, so this tests nothing")
	}
	must[*Info](t)(Read(ctx, bytes.NewReader(a), Options{Policy: trusting(t, k.Public())}))
}

func TestStoredIsDecidedAgain(t *testing.T) {
	k := newKey(t)
	store := openStore(t)
	policy := trusting(t, k.Public())
	info := must[*Info](t)(Read(ctx, bytes.NewReader(bytesOf(t, specOf(100, k))), Options{Policy: policy, Store: store}))
	_, err := Stored(ctx, store, info.Digest, trusting(t, newKey(t).Public()))
	refused(t, err, "unknown key")
	_, err = Stored(ctx, store, "sha256:../x", policy)
	refused(t, err, "no SHA-256 digest")
	if _, err = Stored(ctx, store, digest.FromString("x"), policy); fault.KindOf(err) != fault.Failed || fault.RemedyOf(err) == "" {
		t.Error(err)
	}
	d := info.Declarations[0].Digest
	path := filepath.Join(store.Dir(), "blobs/sha256", d.Encoded())
	if err := os.WriteFile(path, []byte(`{"a":2}`), 0o600); err != nil {
		t.Fatal(err)
	}
	again := must[*Info](t)(Stored(ctx, store, info.Digest, policy))
	_, err = again.Declaration(d)
	refused(t, err, "digest mismatch")
	index := filepath.Join(store.Dir(), "blobs/sha256", info.Digest.Encoded())
	b := must[[]byte](t)(os.ReadFile(index))
	if err := os.WriteFile(index, bytes.Replace(b, []byte(`"7"`), []byte(`"8"`), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = Stored(ctx, store, info.Digest, policy)
	refused(t, err, "digest mismatch")
}

func TestSkopeoReadsWhatWeWrite(t *testing.T) {
	skopeo, err := exec.LookPath("skopeo")
	if err != nil {
		t.Skip("skopeo is not installed")
	}
	k := newKey(t)
	path := filepath.Join(t.TempDir(), "b.tar")
	info := must[*Info](t)(Build(ctx, path, specOf(1000, k)))
	inspect := func(ref string) {
		t.Helper()
		cmd := exec.Command(skopeo, "--tmpdir", t.TempDir(), "inspect", "--raw", ref)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v: %s", err, stderr.String())
		}
		if got := digest.FromBytes(out); got != info.Digest {
			t.Errorf("skopeo reads %s, want %s", got, info.Digest)
		}
		var x v1.Index
		if err := json.Unmarshal(out, &x); err != nil || x.ArtifactType != TypeBundle {
			t.Errorf("%v %q", err, x.ArtifactType)
		}
	}
	inspect("oci-archive:" + path + ":bundle")
	store := openStore(t)
	f := must[*os.File](t)(os.Open(path))
	defer f.Close()
	must[*Info](t)(Read(ctx, f, Options{Policy: trusting(t, k.Public()), Store: store}))
	inspect("oci:" + store.Dir() + ":site-1.2.3-linux-x86_64")
}

func TestARevokedSignerCannotBuildUnderItsRoot(t *testing.T) {
	rootKey, k := newKey(t), newKey(t)
	root := trust.NewRoot(nil, []trust.Key{must[trust.Key](t)(trust.NewKey(rootKey.Public(), trust.ScopeRoot))},
		must[string](t)(trust.KeyID(k.Public())))
	spec := specOf(100, k)
	spec.Roots = [][]byte{must[[]byte](t)(trust.SignRoot(root, rootKey))}
	_, err := Build(ctx, filepath.Join(t.TempDir(), "b"), spec)
	refused(t, err, "revoked key")
}
