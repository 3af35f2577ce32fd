package pack

import (
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/release/internal/attest"
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
	flags := map[string]attest.Flags{}
	var subjects []attest.Subject
	goVersion := p.packed[0].Go
	for _, program := range p.packed {
		if program.Go != goVersion {
			return fault.Refusedf("cannot pack %q: it was compiled by %s, another program by %s", program.Path, program.Go, goVersion)
		}
		subjects = append(subjects, attest.Subject{Name: program.Architecture + "/" + program.ID, SHA256: program.SHA256})
		for _, t := range p.flags.Targets {
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
