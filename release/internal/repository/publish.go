package repository

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/nox-mesh/nox-mesh/internal/durable"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/release/internal/place"
)

// errNone is the fault of a place with no database.
var errNone = fault.Failedf("there is no repository").Hint("make one with \"mesh-release repo add\"")

// Publish puts what the repository in dir holds into the directory to, which is
// made when it is not there, and must otherwise be empty or hold a repository of ours
// and nothing else. Every package and signature is read and verified first. Packages are
// linked; on another file system those that to does not have yet are copied.
func Publish(ctx context.Context, dir, to string, o Options) (Outcome, error) {
	out, err := publish(ctx, dir, to, o)
	if err != nil {
		return Outcome{}, fmt.Errorf("cannot publish repository %q to %q: %w", dir, to, err)
	}
	return out, nil
}

func publish(ctx context.Context, dir, to string, o Options) (Outcome, error) {
	from, err := place.Open(dir, false)
	if err != nil {
		return Outcome{}, err
	}
	defer from.Close()
	// Before anything is made: what is within a repository makes it none.
	if err := apart(from.Path, to); err != nil {
		return Outcome{}, err
	}
	target, err := place.Open(to, !o.DryRun)
	if err != nil {
		return Outcome{}, err
	}
	defer target.Close()
	from.Note, target.Note = o.Note, o.Note
	if err := target.NotWhereWeAre(); err != nil {
		return Outcome{}, err
	}
	if err := place.Lock(ctx, from, target); err != nil {
		return Outcome{}, err
	}
	begin := target.Begin
	if o.DryRun {
		begin = target.Check
	}
	if err := begin(); err != nil {
		return Outcome{}, err
	}
	s, err := readState(from, o.Verifier)
	if err != nil {
		return Outcome{}, err
	}
	defer s.close()
	if s.db == nil {
		return Outcome{}, errNone
	}
	if err := s.whole(); err != nil {
		return Outcome{}, err
	}
	if err := s.check(ctx, o.Verifier); err != nil {
		return Outcome{}, err
	}
	old, err := replaceable(ctx, target, o.Verifier)
	if err != nil {
		return Outcome{}, err
	}
	defer old.close()
	return s.take(ctx, target, old, o.DryRun)
}

// apart holds that the directory dir, an absolute path without symlinks, and to are
// not the same, nor one within the other.
func apart(dir, to string) error {
	to, err := place.Resolve(to)
	switch {
	case err != nil:
		return err
	case dir == to:
		return fault.Usagef("they are the same directory")
	case strings.HasPrefix(to, dir+"/"), strings.HasPrefix(dir, to+"/"):
		return fault.Usagef("one of them is within the other").Hint("give --to a directory elsewhere")
	}
	return nil
}

// check reads every package and holds it against its signature and its entry.
func (s *state) check(ctx context.Context, v Verifier) error {
	for _, name := range slices.Sorted(maps.Keys(s.items)) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := s.checkItem(s.items[name], v); err != nil {
			return fmt.Errorf("package %q: %w", name, err)
		}
	}
	return nil
}

func (s *state) checkItem(i *item, v Verifier) error {
	g, err := openIn(s.dir, i.File+sigSuffix, false)
	if err != nil {
		return err
	}
	defer g.Close()
	signature, err := readAll(g, maxSignature)
	if err != nil {
		return err
	}
	f, err := openIn(s.dir, i.File, false)
	if err != nil {
		return err
	}
	defer f.Close()
	h := sha256.New()
	r := io.TeeReader(f, h)
	if err := v.Verify(r, signature); err != nil {
		return err
	}
	if i.entry == nil {
		return nil
	}
	if _, err := io.Copy(io.Discard, r); err != nil {
		return err
	}
	if hex.EncodeToString(h.Sum(nil)) != i.SHA256 {
		return fault.Refusedf("it is not what the database says")
	}
	if !bytes.Equal(signature, i.entry.signature) {
		return fault.Refusedf("its signature is not what the database says")
	}
	return nil
}

// take replaces the directory in p, which holds old, by what s holds.
func (s *state) take(ctx context.Context, p *place.Place, old *state, dryRun bool) (Outcome, error) {
	out := Outcome{Added: []string{}, Dropped: []string{}, Listed: len(s.entries())}
	for name, i := range s.items {
		if j := old.items[name]; j == nil || i.Size != j.Size {
			out.Added = append(out.Added, name)
		}
	}
	for name := range old.items {
		if s.items[name] == nil {
			out.Dropped = append(out.Dropped, name)
		}
	}
	slices.Sort(out.Added)
	slices.Sort(out.Dropped)
	if dryRun {
		return out, nil
	}
	return out, p.Replace(func(next *durable.Dir) error {
		for name := range s.items {
			if err := ctx.Err(); err != nil {
				return err
			}
			for _, file := range []string{name, name + sigSuffix} {
				if err := s.carry(file, next, old.dir); err != nil {
					return err
				}
			}
		}
		for _, name := range []string{filesName, dbName} {
			for _, suffix := range []string{"", sigSuffix} {
				if err := s.carry(name+suffix, next, nil); err != nil {
					return err
				}
				if err := link(next, name+suffix, name+longSuffix+suffix); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// carry gives a file of the directory a name in next.
func (s *state) carry(name string, next, old *durable.Dir) error {
	f, err := openIn(s.dir, name, strings.HasPrefix(name, Name+"."))
	if err != nil {
		return err
	}
	defer f.Close()
	return carry(f, next, name, old)
}

// List returns the package files of the repository in dir, by name and the newest
// first. Its databases must verify; the packages themselves are not read.
func List(ctx context.Context, dir string, o Options) ([]Package, error) {
	out, err := list(ctx, dir, o)
	if err != nil {
		return nil, fmt.Errorf("cannot list repository %q: %w", dir, err)
	}
	return out, nil
}

func list(ctx context.Context, dir string, o Options) ([]Package, error) {
	p, err := place.Open(dir, false)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	p.Note = o.Note
	if err := place.Lock(ctx, p); err != nil {
		return nil, err
	}
	s, err := readState(p, o.Verifier)
	if err != nil {
		return nil, err
	}
	defer s.close()
	if s.db == nil {
		return nil, errNone
	}
	all := s.newest()
	out := []Package{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		for _, i := range all[name] {
			out = append(out, i.Package)
		}
	}
	return out, nil
}
