package pack

import (
	"fmt"
	"path/filepath"

	"github.com/nox-mesh/nox-mesh/internal/durable"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/release/internal/attest"
	"github.com/nox-mesh/nox-mesh/release/internal/build"
	"github.com/nox-mesh/nox-mesh/release/internal/check"
)

// sbom writes the SBOM of a program, and the signed statement that it has it.
func (p *packing) sbom(program Program) error {
	of := attest.Program{Name: program.ID, Version: p.Version, SHA256: program.SHA256, Time: p.time()}
	sbom, err := attest.SBOM(program.content, of)
	if err != nil {
		return err
	}
	signed, err := attest.Sign(p.Signer.Key, attest.StateSBOM(sbom, of))
	if err != nil {
		return err
	}
	if err := p.put(check.SBOMName(program.ID, p.Version, program.Architecture), sbom); err != nil {
		return err
	}
	return p.put(check.SBOMStatementName(program.ID, p.Version, program.Architecture), signed)
}

// provenance writes the signed statement of how everything was made. It is
// about the programs and every file but signatures.
func (p *packing) provenance() error {
	config, err := build.Read(filepath.Join(p.Source, build.ConfigName))
	if err != nil {
		return err
	}
	flags := map[string]attest.Flags{}
	var subjects []attest.Subject
	goVersion := p.packed[0].Go
	for _, program := range p.packed {
		if program.Go != goVersion {
			return fault.Refusedf("cannot pack %q: it was compiled by %s, another program by %s", program.Path, program.Go, goVersion)
		}
		subjects = append(subjects, attest.Subject{Name: program.Architecture + "/" + program.ID, SHA256: program.SHA256})
		for _, t := range config.Targets {
			if t.ID == program.ID {
				flags[t.ID] = attest.Flags{Main: t.Main, Env: t.Env, Flags: t.Flags, LDFlags: t.LDFlags}
			}
		}
	}
	p.manifest = Manifest{
		Schema: 1, Version: p.Version, Channel: check.Channel(p.Version), Counter: p.Counter,
		Go: goVersion, Compressor: Compressor(), Files: p.files,
	}
	s, err := attest.StateProvenance(attest.Build{
		Version: p.Version, Counter: p.Counter, Architectures: p.manifest.Architectures(), Go: goVersion, Commit: p.Commit, Programs: flags,
	}, append(subjects, p.manifest.Subjects()...))
	if err != nil {
		return err
	}
	signed, err := attest.Sign(p.Signer.Key, s)
	if err != nil {
		return err
	}
	return p.put(check.ProvenanceName(p.Version), signed)
}

// put writes a file of the release.
func (p *packing) put(name string, content []byte) error {
	if err := durable.WriteFile(filepath.Join(p.dir, name), content, 0o644); err != nil {
		return fmt.Errorf("cannot write %q: %w", name, err)
	}
	return p.add(name)
}

// finish writes SHA256SUMS, then release.json, both signed.
func (p *packing) finish() (*Manifest, error) {
	p.manifest.Files = p.files
	if err := p.Signer.Write(filepath.Join(p.dir, check.SumsName), p.manifest.Sums()); err != nil {
		return nil, err
	}
	b, err := p.manifest.Encode()
	if err != nil {
		return nil, err
	}
	return &p.manifest, p.Signer.Write(filepath.Join(p.dir, check.ManifestName), b)
}
