package check

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/release/internal/attest"
)

// SBOMName is the file with the SBOM of a program.
func SBOMName(program, version, arch string) string {
	return fmt.Sprintf("%s-%s-linux-%s.cdx.json", program, version, arch)
}

// SBOMStatementName is the file with the signed statement about it.
func SBOMStatementName(program, version, arch string) string {
	return fmt.Sprintf("%s-%s-linux-%s.cdx.sigstore.json", program, version, arch)
}

// ProvenanceName is the file with the signed statement of how a release was made.
func ProvenanceName(version string) string {
	return fmt.Sprintf("nox-mesh-%s.provenance.sigstore.json", version)
}

// Subjects are what the provenance is about, besides the programs: every file
// listed so far that is no signature or statement.
func (m Manifest) Subjects() []attest.Subject {
	var out []attest.Subject
	for _, f := range m.Files {
		if !isSignature(f.Name) {
			out = append(out, attest.Subject{Name: f.Name, SHA256: f.SHA256})
		}
	}
	return out
}

// isSignature tells what is about a file, and has the size of a signature or
// statement.
func isSignature(name string) bool {
	return strings.HasSuffix(name, trust.SignatureSuffix) || strings.HasSuffix(name, trust.PackageSignatureSuffix)
}

func (r *reading) attestations(ctx context.Context) error {
	subjects := r.manifest.Subjects()
	sboms := 0
	for _, arch := range r.report.Architectures {
		for name, p := range r.programs[arch] {
			if err := r.sbom(arch, name, p.sha256); err != nil {
				return err
			}
			sboms++
			subjects = append(subjects, attest.Subject{Name: arch + "/" + name, SHA256: p.sha256})
		}
	}
	name := ProvenanceName(r.manifest.Version)
	s, err := r.statement(name)
	if err != nil {
		return err
	}
	m := r.manifest
	r.report.Commit, err = attest.HoldProvenance(s, attest.Build{
		Version: m.Version, Counter: m.Counter, Architectures: m.Architectures(), Go: m.Go,
	}, subjects)
	if err != nil {
		return wrong(name, err)
	}
	r.tell("SBOMs", sboms, "signature, of the programs that are packed")
	r.tell("provenance", 1, fmt.Sprintf("signature, %d subjects: all programs and files, as they are", len(subjects)))
	return nil
}

func (r *reading) sbom(arch, program, sum string) error {
	name, signed := SBOMName(program, r.manifest.Version, arch), SBOMStatementName(program, r.manifest.Version, arch)
	s, err := r.statement(signed)
	if err != nil {
		return err
	}
	b, err := r.Read(name, attest.MaxSize)
	if err != nil {
		return err
	}
	p := attest.Program{Name: program, Version: r.manifest.Version, SHA256: sum, Time: time.Unix(int64(r.manifest.Counter), 0)}
	if err := attest.HoldSBOM(s, b, p); err != nil {
		return wrong(signed, err)
	}
	return nil
}

func (r *reading) statement(name string) (attest.Statement, error) {
	b, err := r.Read(name, attest.MaxSize)
	if err != nil {
		return attest.Statement{}, err
	}
	s, err := attest.Verify(b, r.Policy)
	if err != nil {
		return attest.Statement{}, wrong(name, err)
	}
	return s, nil
}
