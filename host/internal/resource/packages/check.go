package packages

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/host/internal/resource"
	"github.com/nox-mesh/nox-mesh/host/internal/resource/packages/database"
)

// found is resource.State.Found: what was installed.
type found struct {
	Version string `json:"version"`
	// Broken: it was not whole.
	Broken bool `json:"broken,omitempty"`
}

// Check implements resource.Kind.
func (k *Kind) Check(ctx context.Context, want resource.Want, prior *resource.Record) (resource.State, error) {
	st, err := k.check(ctx, want, prior)
	if err != nil {
		return resource.State{}, fmt.Errorf("cannot check package %q: %w", want.Resource.Package.Name, err)
	}
	return st, nil
}

func (k *Kind) check(ctx context.Context, want resource.Want, prior *resource.Record) (resource.State, error) {
	p := want.Resource.Package
	if lacking := k.choose(); lacking != "" {
		return resource.State{}, resource.Unsupported{Why: lacking}
	}
	if p.Source != "" && p.Signature == "" && k.Manager.WantsSignature() {
		return resource.State{}, fmt.Errorf("%s wants the signature of what has a source: declare it", k.Manager.Name())
	}
	is, err := k.Manager.Look(p.Name)
	if err != nil {
		return resource.State{}, err
	}
	hand, err := k.hand(p.Name)
	if err != nil {
		return resource.State{}, err
	}
	st := resource.State{Exists: is.Installed}
	if is.Installed {
		if st.Found, err = json.Marshal(found{is.Version, is.Broken != ""}); err != nil {
			return st, err
		}
	}
	if st.Differences, st.Note, err = k.compare(ctx, p, is, prior); err != nil {
		return st, err
	}
	if hand != nil {
		st.Differences = append(st.Differences, hand.Why)
	}
	st.Same = len(st.Differences) == 0
	if !st.Same && is.Held != "" {
		return st, resource.Held{Why: fmt.Sprintf("%s: %s", strings.Join(st.Differences, ", "), is.Held)}
	}
	if !st.Same && p.Name == own && k.Failed != nil {
		version, err := k.version(ctx, p)
		if err != nil {
			return st, err
		}
		if why := k.Failed(cmp.Or(version, is.Version), p.Source); why != "" {
			return st, resource.Held{Why: why}
		}
	}
	// The host's own is the package that every machine has before a declaration.
	st.Foreign = st.Exists && !st.Same && prior == nil && hand == nil && p.Name != own
	return st, nil
}

// compare says how what is there differs from what is wanted.
func (k *Kind) compare(ctx context.Context, p *declaration.Package, is database.Package, prior *resource.Record) (differences []string, note string, err error) {
	if !is.Installed {
		return []string{"not installed"}, "", nil
	}
	version, err := k.version(ctx, p)
	switch {
	case err != nil:
		return nil, "", err
	case version != "" && is.Version != version:
		differences = append(differences, fmt.Sprintf("version %s, want %s", is.Version, version))
	case version != "" && anotherSource(p, prior):
		differences = append(differences, fmt.Sprintf("version %s from another source", is.Version))
	}
	if is.Broken != "" {
		return append(differences, is.Broken), "", nil
	}
	changed, note, err := k.files(ctx, is.Files)
	return append(differences, changed...), note, err
}

// version is what shall be installed; "" is any.
func (k *Kind) version(ctx context.Context, p *declaration.Package) (string, error) {
	if p.Version != "" || p.Source == "" {
		return p.Version, nil
	}
	k.mu.Lock()
	v, ok := k.versions[p.Source]
	k.mu.Unlock()
	if ok {
		return v, nil
	}
	f, err := k.Content.Open(p.Source)
	if err != nil {
		return "", err
	}
	defer f.Close()
	_, v, err = k.Manager.Describe(ctx, f.Name())
	if err == nil {
		k.know(p.Source, v)
	}
	return v, err
}

func (k *Kind) know(source digest.Digest, version string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.versions[source] = version
}

// anotherSource: it was applied from another file than is wanted now. Which one
// what is installed came from is in no database.
func anotherSource(p *declaration.Package, prior *resource.Record) bool {
	if prior == nil || p.Source == "" {
		return false
	}
	was, err := declaration.FromSpec(prior.ID, prior.Spec)
	return err == nil && was.Package != nil && was.Package.Source != "" && was.Package.Source != p.Source
}
