package attest

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"github.com/nox-mesh/nox-mesh/pkgbuild"
)

// A Build is how a release was made.
type Build struct {
	Version       string
	Counter       uint64
	Architectures []string
	// Go is the toolchain ("go1.26.0").
	Go string
	// Commit is that of the source, in hex, or "" when it is not known.
	Commit string
	// Programs are the flags by program.
	Programs map[string]Flags
}

// Flags are what a program was compiled with, as .goreleaser.yaml has them.
type Flags struct {
	Main    string   `json:"main"`
	Env     []string `json:"env"`
	Flags   []string `json:"flags"`
	LDFlags []string `json:"ldflags"`
}

// The predicate, https://slsa.dev/provenance/v1.
type (
	provenance struct {
		Definition definition `json:"buildDefinition"`
		Run        run        `json:"runDetails"`
	}
	definition struct {
		Type     string     `json:"buildType"`
		External external   `json:"externalParameters"`
		Internal internal   `json:"internalParameters"`
		Resolved []resource `json:"resolvedDependencies,omitempty"`
	}
	// external is what whoever built chose.
	external struct {
		Source        string   `json:"source"`
		Version       string   `json:"version"`
		Counter       uint64   `json:"counter"`
		Architectures []string `json:"architectures"`
	}
	// internal is what follows from the source and the machine.
	internal struct {
		Go       string           `json:"go"`
		Programs map[string]Flags `json:"programs"`
	}
	resource struct {
		URI    string            `json:"uri"`
		Digest map[string]string `json:"digest"`
	}
	run struct {
		Builder builder `json:"builder"`
	}
	builder struct {
		ID string `json:"id"`
	}
)

// buildType says that the parameters are those above.
const buildType = pkgbuild.Homepage + "/release/build/v1"

func (b Build) predicate() ([]byte, error) {
	source := "git+" + pkgbuild.Homepage
	p := provenance{
		Definition: definition{
			Type:     buildType,
			External: external{source, b.Version, b.Counter, b.Architectures},
			Internal: internal{b.Go, b.Programs},
		},
		Run: run{builder{pkgbuild.Homepage + "/mesh-release"}},
	}
	if b.Commit != "" {
		p.Definition.Resolved = []resource{{source, map[string]string{"gitCommit": b.Commit}}}
	}
	return compact(p)
}

// StateProvenance states how the subjects were made.
func StateProvenance(b Build, subjects []Subject) (Statement, error) {
	predicate, err := b.predicate()
	return Statement{PredicateType: ProvenanceType, Subjects: sorted(subjects), Predicate: predicate}, err
}

// HoldProvenance holds that s states how the release of b was made, of just the
// subjects. Commit and Programs of b do not count; the commit is returned.
func HoldProvenance(s Statement, b Build, subjects []Subject) (commit string, err error) {
	var p provenance
	if err := strict(s.Predicate, &p); err != nil {
		return "", err
	}
	if len(p.Definition.Resolved) > 0 {
		b.Commit = p.Definition.Resolved[0].Digest["gitCommit"]
	}
	b.Programs = p.Definition.Internal.Programs
	want, err := b.predicate()
	if err != nil {
		return "", err
	}
	if s.PredicateType != ProvenanceType || !bytes.Equal(want, s.Predicate) {
		return "", fmt.Errorf("it is not about a build of this release")
	}
	subjects = sorted(subjects)
	for i, of := range s.Subjects {
		if i >= len(subjects) || of != subjects[i] {
			return "", fmt.Errorf("it is about %q, which this release does not have so", of.Name)
		}
	}
	if len(s.Subjects) != len(subjects) {
		return "", fmt.Errorf("it is not about %q", subjects[len(s.Subjects)].Name)
	}
	return b.Commit, nil
}

func sorted(subjects []Subject) []Subject {
	subjects = slices.Clone(subjects)
	slices.SortFunc(subjects, func(a, b Subject) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.SHA256, b.SHA256)) })
	return subjects
}
