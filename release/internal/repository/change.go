package repository

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/nox-mesh/nox-mesh/internal/durable"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/release/internal/place"
)

// Add adds packages, each a file with its signature beside it, to the repository
// in dir, which is made when it is not there. What is there already, with the
// same bytes, is no error; one of the files may be in dir. All are added or none.
func Add(ctx context.Context, dir string, packages []string, o Options) (Outcome, error) {
	out, err := change(ctx, dir, o, func(s *state, done *Outcome) error {
		for _, path := range packages {
			if err := ctx.Err(); err != nil {
				return err
			}
			added, err := s.add(path, o)
			if err != nil {
				return fmt.Errorf("package %q: %w", path, err)
			}
			if added != "" {
				done.Added = append(done.Added, added)
			}
		}
		n, err := o.keep()
		if err != nil {
			return err
		}
		return s.prune(n, done)
	})
	if err != nil {
		return Outcome{}, fmt.Errorf("cannot add to repository %q: %w", dir, err)
	}
	return out, nil
}

// Remove removes all versions of the packages with these names.
func Remove(ctx context.Context, dir string, names []string, o Options) (Outcome, error) {
	out, err := change(ctx, dir, o, func(s *state, done *Outcome) error {
		if s.db == nil {
			return errNone
		}
		all := s.newest()
		for _, name := range names {
			if all[name] == nil {
				return fault.Failedf("it has no package %q", name).Hint("see \"mesh-release repo list\"")
			}
			for _, i := range all[name] {
				delete(s.items, i.File)
				done.Dropped = append(done.Dropped, i.File)
			}
			delete(all, name)
		}
		return nil
	})
	if err != nil {
		return Outcome{}, fmt.Errorf("cannot remove from repository %q: %w", dir, err)
	}
	return out, nil
}

// change reads the repository, lets edit change what it holds, and replaces the
// directory.
func change(ctx context.Context, dir string, o Options, edit func(*state, *Outcome) error) (Outcome, error) {
	p, err := place.Open(dir, !o.DryRun)
	if err != nil {
		return Outcome{}, err
	}
	defer p.Close()
	p.Note = o.Note
	if err := p.NotWhereWeAre(); err != nil {
		return Outcome{}, err
	}
	if err := place.Lock(ctx, p); err != nil {
		return Outcome{}, err
	}
	begin := p.Begin
	if o.DryRun {
		begin = p.Check
	}
	if err := begin(); err != nil {
		return Outcome{}, err
	}
	s, err := readState(p, o.Verifier)
	if err != nil {
		return Outcome{}, err
	}
	defer s.close()
	done := Outcome{Added: []string{}, Dropped: []string{}}
	if err := edit(s, &done); err != nil {
		return Outcome{}, err
	}
	if err := s.whole(); err != nil {
		return Outcome{}, err
	}
	slices.Sort(done.Added)
	slices.Sort(done.Dropped)
	entries := s.entries()
	done.Listed = len(entries)
	if o.DryRun || len(done.Added)+len(done.Dropped) == 0 {
		return done, nil
	}
	return done, p.Replace(func(next *durable.Dir) error {
		for _, i := range s.items {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := s.place(i, next); err != nil {
				return err
			}
		}
		return writeDatabases(entries, next, o)
	})
}

// prune drops all but the n newest of each name.
func (s *state) prune(n int, done *Outcome) error {
	for _, of := range s.newest() {
		for _, i := range of[min(n, len(of)):] {
			if slices.Contains(done.Added, i.File) {
				return fault.Refusedf("package %q is older than the %d that are kept of it", i.File, n).Hint("give --keep N to keep more")
			}
			delete(s.items, i.File)
			done.Dropped = append(done.Dropped, i.File)
		}
	}
	return nil
}

func sortNewest(of []*item) {
	slices.SortFunc(of, func(a, b *item) int {
		return cmp.Or(CompareVersions(b.Version, a.Version), cmp.Compare(a.File, b.File))
	})
}
