package trust

import (
	"crypto/ecdsa"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/internal/guard"
	"github.com/nox-mesh/nox-mesh/internal/input"
)

// maxKeyFile bounds the file of a public key, in bytes.
const maxKeyFile = 16 << 10

// SignatureSuffix ends the name of the file that holds a file's signature.
const SignatureSuffix = ".sigstore.json"

// ErrEmpty is in the chain of the error for a directory that holds neither a
// release root nor a public key.
var ErrEmpty = errors.New("nothing to trust")

// LoadDir trusts what lies in dir: a chain of release roots (N.root.json, from
// any N on without a gap) and public keys (*.pub, for releases). The oldest
// root is trusted as it is, the others as they follow. Anything else there, a
// secret key for one, is passed over.
//
// It refuses a directory, and a file in it, that anybody but root and the
// caller owns or may write: they would decide what is trusted.
func LoadDir(dir string) (*Policy, error) {
	entries, err := readGuarded(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot read trust directory: %w", err)
	}
	p := &Policy{loose: map[string]*ecdsa.PublicKey{}}
	var versions []int
	for _, e := range entries {
		if number, ok := strings.CutSuffix(e.Name(), ".root.json"); ok {
			n, err := strconv.Atoi(number)
			if err == nil && n > 0 && strconv.Itoa(n) == number {
				versions = append(versions, n)
			}
		}
		if strings.HasSuffix(e.Name(), ".pub") {
			pub, id, err := readPublic(filepath.Join(dir, e.Name()), readOwn)
			if err != nil {
				return nil, err
			}
			p.loose[id] = pub
		}
	}
	slices.Sort(versions)
	for _, n := range versions {
		name := filepath.Join(dir, strconv.Itoa(n)+".root.json")
		b, err := readOwn(name, MaxRoot)
		if err != nil {
			return nil, fmt.Errorf("cannot read release root: %w", err)
		}
		l, err := parseLink(b)
		if err != nil {
			return nil, fmt.Errorf("cannot trust %q: %w", name, err)
		}
		if l.root.Version != n {
			return nil, fault.Refusedf("cannot trust %q: it holds version %d", name, l.root.Version)
		}
		if prev := p.inForce(); prev != nil {
			if err := l.follows(prev); err != nil {
				return nil, fmt.Errorf("cannot trust %q: %w", name, err)
			}
		}
		p.chain = append(p.chain, l)
	}
	if p.Empty() {
		return nil, fault.Refusedf("cannot trust directory %q: %w", dir, ErrEmpty).
			Hint("put a release root (1.root.json) or a public key (release.pub) there")
	}
	return p, nil
}

// LoadKey trusts one public key (PEM, ECDSA P-256) for releases.
func LoadKey(file string) (*Policy, error) {
	pub, id, err := readPublic(file, input.ReadFile)
	if err != nil {
		return nil, err
	}
	return &Policy{loose: map[string]*ecdsa.PublicKey{id: pub}}, nil
}

func readPublic(file string, read func(string, int64) ([]byte, error)) (*ecdsa.PublicKey, string, error) {
	b, err := read(file, maxKeyFile)
	if err != nil {
		return nil, "", fmt.Errorf("cannot read public key: %w", err)
	}
	pub, id, err := parsePublic(b)
	if err != nil {
		return nil, "", fault.Refusedf("cannot read public key %q: %w", file, err)
	}
	return pub, id, nil
}

// VerifyFile verifies the file at path by the signature that lies beside it
// (path + SignatureSuffix), for scope release. The file is hashed as it is
// read; it is the caller's to use the same bytes.
func VerifyFile(path string, p *Policy) (digest.Digest, []Signer, error) {
	sig, err := input.ReadFile(path+SignatureSuffix, MaxSignature)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil, fault.Refusedf("cannot verify %q: %w, there is no %q", path, ErrNoSignature, path+SignatureSuffix)
	}
	if err != nil {
		return "", nil, fmt.Errorf("cannot read signature: %w", err)
	}
	f, _, err := input.Regular(path)
	if err != nil {
		return "", nil, fmt.Errorf("cannot verify file: %w", err)
	}
	defer f.Close()
	h := digest.SHA256.Digester()
	if _, err := io.Copy(h.Hash(), f); err != nil {
		return "", nil, fmt.Errorf("cannot verify file: %w", err)
	}
	signers, err := p.Verify(h.Digest(), [][]byte{sig}, ScopeRelease)
	if err != nil {
		return "", nil, fmt.Errorf("cannot verify %q: %w", path, err)
	}
	return h.Digest(), signers, nil
}

// readGuarded lists a directory that only root and the caller may write. The
// link that dir may be is judged too.
func readGuarded(dir string) ([]fs.DirEntry, error) {
	fi, err := os.Lstat(dir)
	if err != nil {
		return nil, err
	}
	if err := guard.Own(dir, fi); err != nil {
		return nil, err
	}
	d, err := input.Folder(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	if fi, err = d.Stat("."); err != nil {
		return nil, err
	}
	if err := guard.Own(dir, fi); err != nil {
		return nil, err
	}
	return fs.ReadDir(d.FS(), ".")
}

// readOwn is input.ReadFile of one that only root and the caller may write.
func readOwn(path string, max int64) ([]byte, error) {
	f, fi, err := input.Regular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := guard.Own(path, fi); err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(f, max+1))
	if err == nil && int64(len(b)) > max {
		err = fault.Refusedf("%q has more than %d bytes", path, max)
	}
	return b, err
}
