package installer

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/internal/layout"
	"github.com/nox-mesh/nox-mesh/pkgbuild"
)

// maxRoots bounds a chain of release roots, as a bundle does.
const maxRoots = 64

// A decision is what the trust of this machine says about a tarball.
type decision struct {
	floor *floor
	// roots is the chain in the tarball, oldest first, walked to its end:
	// roots[i] is version i+1.
	roots [][]byte
	// policy is what the machine trusts with it.
	policy      *trust.Policy
	rootVersion int
	fingerprint string
	// first: this machine knew nobody before.
	first bool
}

// decide verifies the unpacked tarball in dir. prefixes are where this install
// goes and where an earlier one went. It reads the machine and the folder, and
// writes nothing.
func decide(l layout.Layout, prefixes []string, dir, expectRoot string) (*decision, error) {
	manifest, err := readSmall(filepath.Join(dir, pkgbuild.ManifestName))
	if err != nil {
		return nil, damaged(err)
	}
	signature, err := readSmall(filepath.Join(dir, pkgbuild.SignatureName))
	if err != nil {
		return nil, damaged(err)
	}
	roots, err := readRoots(filepath.Join(dir, memberTrust))
	if err != nil {
		return nil, damaged(err)
	}
	d := &decision{roots: roots}
	policy, err := machineTrust(l, prefixes)
	if err != nil {
		return nil, err
	}
	if policy == nil {
		d.first = true
		if policy, err = firstTrust(roots, expectRoot); err != nil {
			return nil, err
		}
	}
	if v, _ := policy.Root(); v > 0 {
		if policy, err = policy.Advance(roots); err != nil {
			return nil, fmt.Errorf("cannot install: the release roots of the tarball do not follow the one in force: %w", err)
		}
		if v, _ := policy.Root(); v < len(roots) {
			return nil, fault.Refusedf("cannot install: the release roots of the tarball do not follow root %d, which is in force", v)
		}
	}
	d.policy = policy
	d.rootVersion, d.fingerprint = policy.Root()
	if err := d.expect(expectRoot); err != nil {
		return nil, err
	}
	if _, err := policy.Verify(digest.FromBytes(manifest), [][]byte{signature}, trust.ScopeRelease); err != nil {
		return nil, fault.Refusedf("cannot install: the manifest of the tarball does not verify: %w", err).
			Hint("fetch it again from a place you trust")
	}
	m, err := pkgbuild.ParseManifest(manifest)
	if err != nil {
		return nil, fault.Refusedf("cannot install: %w", err)
	}
	if d.floor, err = readFloor(dir, m); err != nil {
		return nil, err
	}
	return d, d.rootsAreSigned()
}

func damaged(err error) error {
	return fault.Refusedf("cannot install: the unpacked tarball is damaged: %w", err).Hint("fetch and unpack it again")
}

// machineTrust returns whom this machine trusts already, or nil.
func machineTrust(l layout.Layout, prefixes []string) (*trust.Policy, error) {
	p, err := trust.Machine(l, prefixes...)
	if errors.Is(err, trust.ErrEmpty) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot install: the release roots on this machine contradict each other: %w", err)
	}
	return p, nil
}

// firstTrust takes the chain the tarball brings, from the expected root on when
// one is expected.
func firstTrust(roots [][]byte, expectRoot string) (*trust.Policy, error) {
	if len(roots) == 0 {
		return nil, fault.Refusedf("cannot install: the tarball holds no release root, and this machine trusts nobody")
	}
	start := roots[0]
	for _, r := range roots {
		if expectRoot != "" && fingerprint(r) == plainHex(expectRoot) {
			start = r
		}
	}
	return trust.FromRoot(start)
}

// expect checks --expect-root: the root in force, or one that leads to it.
func (d *decision) expect(want string) error {
	if want == "" {
		return nil
	}
	want = plainHex(want)
	if b, err := hex.DecodeString(want); err != nil || len(b) != sha256.Size {
		return fault.Usagef("cannot install: the expected root %q is not a SHA-256", want)
	}
	if want == d.fingerprint {
		return nil
	}
	for _, r := range d.roots {
		if fingerprint(r) == want {
			return nil
		}
	}
	return fault.Refusedf("cannot install: the release root is sha256:%s, not the expected sha256:%s", d.fingerprint, want).
		Hint("this tarball is not from the publisher you meant")
}

// rootsAreSigned makes sure that the chain that was walked is the one the
// manifest names, and that the manifest names no other.
func (d *decision) rootsAreSigned() error {
	n := 0
	for _, m := range d.floor.manifest.Members {
		if strings.HasPrefix(m.Path, memberTrust+"/") {
			n++
		}
	}
	for i, r := range d.roots {
		if !bytes.Equal(d.floor.small[rootMember(i)], r) {
			n = -1
		}
	}
	if n != len(d.roots) {
		return fault.Refusedf("cannot install: the manifest of the tarball names other release roots than those in it")
	}
	return nil
}

func rootMember(i int) string { return fmt.Sprintf("%s/%d.root.json", memberTrust, i+1) }

// readRoots reads 1.root.json … N.root.json of dir.
func readRoots(dir string) ([][]byte, error) {
	var roots [][]byte
	for i := range maxRoots {
		b, err := readSmall(filepath.Join(dir, filepath.Base(rootMember(i))))
		if errors.Is(err, os.ErrNotExist) {
			break
		}
		if err != nil {
			return nil, err
		}
		roots = append(roots, b)
	}
	return roots, nil
}

func fingerprint(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func plainHex(s string) string { return strings.ToLower(strings.TrimPrefix(s, "sha256:")) }
