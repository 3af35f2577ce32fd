package pack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/nox-mesh/nox-mesh/internal/durable"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/internal/input"
	"github.com/nox-mesh/nox-mesh/release/internal/build"
	"github.com/nox-mesh/nox-mesh/release/internal/place"
)

// Collect is for a builder that hands over one program at a time, and several at
// once: GoReleaser has no moment after all builds. Each call notes its program,
// under a lock; the one that completes the set that
// .goreleaser.yaml names makes the release and removes the set. Until then m is
// nil, and missing says what is still to come.
//
// A run that was killed leaves its set. A program of it counts for the next run of
// the same version, counter and commit as long as it lies where it was noted, with
// the same bytes: nothing in it says which run compiled it. Of a commit that is
// known it is what the next run would compile too. Of one that is not (Commit is
// "": the tree was changed) it may be older than the tree is now, so clear the
// builder's own directory first, as "goreleaser --clean" does; what is gone from
// there is not in the set.
func (r Release) Collect(ctx context.Context, program, out string) (m *Manifest, missing []string, err error) {
	p, err := ReadProgram(program)
	if err != nil {
		return nil, nil, err
	}
	config, err := r.config()
	if err != nil {
		return nil, nil, err
	}
	wanted := wanted(config)
	if !slices.Contains(wanted, p.name()) {
		return nil, nil, fault.Refusedf("cannot collect %q: a release has no %s", program, p.name())
	}
	if err := r.admit(config, p); err != nil {
		return nil, nil, err
	}
	set, err := r.set(ctx, out)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot collect %q: %w", program, err)
	}
	defer set.Close()
	if err := p.note(set.Path); err != nil {
		return nil, nil, fmt.Errorf("cannot collect %q: %w", program, err)
	}
	for _, name := range wanted {
		if p, ok := noted(set.Path, name); ok {
			r.Programs = append(r.Programs, p)
		} else {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return nil, missing, nil
	}
	// The set is used once, whatever comes of it.
	m, err = r.Write(ctx, out)
	if err = errors.Join(err, set.Remove()); err != nil {
		return nil, nil, err
	}
	return m, nil, nil
}

// set opens the set for the release in out, and locks it. One of another version or
// commit is another set.
func (r Release) set(ctx context.Context, out string) (*place.Set, error) {
	base, err := filepath.Abs(out)
	if err != nil {
		return nil, err
	}
	name := fmt.Sprintf(".%s.programs-%s-%d-%.12s", filepath.Base(base), r.Version, r.Counter, r.Commit)
	return place.OpenSet(ctx, filepath.Join(filepath.Dir(base), name))
}

func (p Program) name() string { return p.Architecture + "/" + p.ID }

// A note says where a program of the set is, and what it was.
type note struct{ Path, SHA256 string }

func (p Program) note(dir string) error {
	path, err := filepath.Abs(p.Path)
	if err != nil {
		return err
	}
	b, err := json.Marshal(note{path, p.SHA256})
	if err != nil {
		return err
	}
	file := filepath.Join(dir, p.name())
	if err := durable.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return durable.WriteFile(file, b, 0o644)
}

// noted reads a program of the set. One that is gone from where it was, or was
// compiled again since, is not in the set: a run that was killed noted it.
func noted(dir, name string) (Program, bool) {
	b, err := input.ReadFile(filepath.Join(dir, name), 1<<20)
	if err != nil {
		return Program{}, false
	}
	var n note
	if json.Unmarshal(b, &n) != nil {
		return Program{}, false
	}
	p, err := ReadProgram(n.Path)
	return p, err == nil && p.SHA256 == n.SHA256 && p.name() == name
}

// wanted are the names of the programs that .goreleaser.yaml builds for a
// release.
func wanted(config build.Config) []string {
	var all []string
	for _, t := range config.Targets {
		for arch, goarch := range build.Architectures {
			if slices.Contains(Contents, t.ID) && slices.Contains(t.GOARCH, goarch) {
				all = append(all, Program{ID: t.ID, Architecture: arch}.name())
			}
		}
	}
	slices.Sort(all)
	return all
}
