package pack

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/nox-mesh/nox-mesh/internal/durable"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/release/internal/build"
	"github.com/nox-mesh/nox-mesh/release/internal/place"
)

// Collect is for a builder that hands over one program at a time, and several at
// once: GoReleaser has no moment after all builds. Each call puts its program
// beside the others, under a lock; the one that completes the set that
// .goreleaser.yaml names makes the release and removes the set. Until then m is
// nil, and missing says what is still to come.
func (r Release) Collect(ctx context.Context, program, out string) (m *Manifest, missing []string, err error) {
	p, err := ReadProgram(program)
	if err != nil {
		return nil, nil, err
	}
	wanted, err := wanted(r.Source)
	if err != nil {
		return nil, nil, err
	}
	if !slices.Contains(wanted, p.name()) {
		return nil, nil, fault.Refusedf("cannot collect %q: a release has no %s", program, p.name())
	}
	base, err := filepath.Abs(out)
	if err != nil {
		return nil, nil, err
	}
	// Of another version or commit is another set.
	dir := filepath.Join(filepath.Dir(base), fmt.Sprintf(".%s.programs-%s-%d-%.12s", filepath.Base(base), r.Version, r.Counter, r.Commit))
	set, err := place.Open(filepath.Join(dir, "set"), true)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot collect %q: %w", program, err)
	}
	defer set.Close()
	if err := place.Lock(ctx, set); err != nil {
		return nil, nil, fmt.Errorf("cannot collect %q: %w", program, err)
	}
	own := filepath.Join(dir, p.name())
	if err := durable.MkdirAll(filepath.Dir(own), 0o755); err != nil {
		return nil, nil, fmt.Errorf("cannot collect %q: %w", program, err)
	}
	if err := durable.WriteFile(own, p.content, 0o755); err != nil {
		return nil, nil, fmt.Errorf("cannot collect %q: %w", program, err)
	}
	for _, name := range wanted {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return nil, missing, nil
	}
	// The set is used once, whatever comes of it: what a failed release leaves must
	// not be taken for programs of the next.
	defer os.RemoveAll(dir)
	for _, name := range wanted {
		p, err := ReadProgram(filepath.Join(dir, name))
		if err != nil {
			return nil, nil, err
		}
		r.Programs = append(r.Programs, p)
	}
	if m, err = r.Write(ctx, out); err != nil {
		return nil, nil, err
	}
	return m, nil, nil
}

func (p Program) name() string { return p.Architecture + "/" + p.ID }

// wanted are the names of the programs that .goreleaser.yaml builds for a
// release.
func wanted(source string) ([]string, error) {
	config, err := build.Read(filepath.Join(source, build.ConfigName))
	if err != nil {
		return nil, err
	}
	var all []string
	for _, t := range config.Targets {
		for arch, goarch := range build.Architectures {
			if slices.Contains(Contents, t.ID) && slices.Contains(t.GOARCH, goarch) {
				all = append(all, Program{ID: t.ID, Architecture: arch}.name())
			}
		}
	}
	slices.Sort(all)
	return all, nil
}
