package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/nox-mesh/nox-mesh/internal/durable"
	"github.com/nox-mesh/nox-mesh/release/internal/attest"
	"github.com/nox-mesh/nox-mesh/release/internal/build"
	"github.com/nox-mesh/nox-mesh/release/internal/check"
)

// sbom writes the SBOM of a program, and the signed statement that it has it.
func (r *release) sbom(id, arch, binary string) error {
	b, err := os.ReadFile(binary)
	if err != nil {
		return fmt.Errorf("cannot make the SBOM of %q: %w", id, err)
	}
	digest := sha256.Sum256(b)
	p := attest.Program{Name: id, Version: r.version, SHA256: hex.EncodeToString(digest[:]), Time: time.Unix(int64(r.counter), 0)}
	sbom, err := attest.SBOM(b, p)
	if err != nil {
		return err
	}
	signed, err := attest.Sign(r.signer.key, attest.StateSBOM(sbom, p))
	if err != nil {
		return err
	}
	name := check.SBOMName(id, r.version, arch)
	if err := r.put(name, sbom); err != nil {
		return err
	}
	r.programs = append(r.programs, attest.Subject{Name: arch + "/" + id, SHA256: p.SHA256})
	return r.put(check.SBOMStatementName(id, r.version, arch), signed)
}

// provenance writes the signed statement of how everything was made. It is
// about the programs and every file but signatures.
func (r *release) provenance() error {
	config, err := build.Read(filepath.Join(r.source, build.ConfigName))
	if err != nil {
		return err
	}
	flags := map[string]attest.Flags{}
	for _, t := range config.Targets {
		for _, s := range r.programs {
			if strings.HasSuffix(s.Name, "/"+t.ID) {
				flags[t.ID] = attest.Flags{Main: t.Main, Env: t.Env, Flags: t.Flags, LDFlags: t.LDFlags}
			}
		}
	}
	subjects := r.programs
	m := check.Manifest{Version: r.version, Counter: r.counter, Go: r.compiler.GoVersion, Files: r.files}
	subjects = append(subjects, m.Subjects()...)
	s, err := attest.StateProvenance(attest.Build{
		Version: r.version, Counter: r.counter, Architectures: m.Architectures(), Go: m.Go, Commit: r.commit, Programs: flags,
	}, subjects)
	if err != nil {
		return err
	}
	signed, err := attest.Sign(r.signer.key, s)
	if err != nil {
		return err
	}
	return r.put(check.ProvenanceName(r.version), signed)
}

// put writes a file of the release.
func (r *release) put(name string, content []byte) error {
	if err := durable.WriteFile(filepath.Join(r.out, name), content, 0o644); err != nil {
		return fmt.Errorf("cannot write %q: %w", name, err)
	}
	return r.add(name)
}
