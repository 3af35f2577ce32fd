package check

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"

	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/internal/durable"
	"github.com/nox-mesh/nox-mesh/release/internal/attest"
	"github.com/nox-mesh/nox-mesh/release/internal/signing/claim"
)

// cosign verifies files by the sigstore bundle beside them, and the statements
// about what the release is made of. With a key in a file and no transparency log
// it needs nothing but that key.
type cosign struct{}

func (cosign) needs() []string { return []string{"cosign"} }

func (cosign) how() string { return "signed files; SBOMs and provenance of what they are about" }

var cosignMajor = regexp.MustCompile(`^v(\d+)\.`)

func (cosign) version(ctx context.Context, b bench) (string, error) {
	out, err := b.run(ctx, "cosign", "version", "--json")
	if err != nil {
		return "", fmt.Errorf("it does not run: %w", err)
	}
	var v struct {
		Version string `json:"gitVersion"`
	}
	if err := json.Unmarshal([]byte(out), &v); err != nil || v.Version == "" {
		return "", errors.New("it does not say its version")
	}
	// One that was built from a checkout says another word: it is taken as new.
	if m := cosignMajor.FindStringSubmatch(v.Version); m != nil {
		if major, err := strconv.Atoi(m[1]); err != nil || major < 3 {
			return v.Version, errors.New("it does not read these signatures; version 3 does")
		}
	}
	return v.Version, nil
}

func (cosign) testify(ctx context.Context, b bench, r *reading) (int, error) {
	c := oath{b, r}
	for _, k := range r.Policy.Keys(trust.ScopeRelease) {
		if err := durable.WriteFile(b.path(k.ID), []byte(k.Public), 0o600); err != nil {
			return 0, err
		}
	}
	n := 0
	blobs := []string{ManifestName, SumsName}
	var products []string
	for _, arch := range r.report.Architectures {
		blobs = append(blobs, r.manifest.floorName(arch))
		products = append(products, r.manifest.floorName(arch), r.manifest.bundleName(arch))
		version, err := r.manifest.packageVersion()
		if err != nil {
			return 0, err
		}
		for _, name := range slices.Sorted(maps.Keys(packages)) {
			program := packages[name]
			products = append(products, r.manifest.packageFile(name, arch, version))
			if program == "" {
				continue
			}
			// The program is within a package: its digest stands for it.
			signed := SBOMStatementName(program, r.manifest.Version, arch)
			err := c.verify(ctx, signed, signed, "verify-blob-attestation", "--type", "cyclonedx",
				"--digestAlg", "sha256", "--digest", r.programs[arch][program].sha256)
			if err != nil {
				return n, err
			}
			n++
		}
	}
	for _, name := range blobs {
		if err := c.verify(ctx, name, name+trust.SignatureSuffix, "verify-blob", c.file(name)); err != nil {
			return n, err
		}
		n++
	}
	for _, name := range products {
		if err := c.verify(ctx, name, ProvenanceName(r.manifest.Version), "verify-blob-attestation", "--type", "slsaprovenance1", c.file(name)); err != nil {
			return n, err
		}
	}
	return n + 1, nil
}

// An oath is cosign with the keys in files by their ids.
type oath struct {
	bench
	r *reading
}

func (o oath) file(name string) string {
	path, err := filepath.Abs(filepath.Join(o.r.dir, name))
	if err != nil {
		return name
	}
	return path
}

// verify has cosign verify the file name by the sigstore bundle in signed.
func (o oath) verify(ctx context.Context, name, signed, verb string, args ...string) error {
	b, err := o.r.Read(signed, attest.MaxSize)
	if err != nil {
		return err
	}
	// Our reading took the key it names for one that is trusted, and without one
	// there is no such file.
	by, err := claim.Read(b)
	if err != nil {
		return wrong(signed, err)
	}
	all := append([]string{verb, "--key", o.path(by.Key), "--bundle", o.file(signed), "--insecure-ignore-tlog"}, args...)
	if _, err := o.run(ctx, "cosign", all...); err != nil {
		return refuses(ctx, "cosign", name, err)
	}
	return nil
}
