package container

import (
	"context"
	"fmt"

	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/host/internal/resource"
)

// Remove implements resource.Kind: what was made for the name goes, finished or
// not, and what was somebody's comes back. Volumes with a name stay.
func (k *Kind) Remove(ctx context.Context, record resource.Record) (declaration.Outcome, string, error) {
	name, err := key(record)
	if err != nil {
		return "", "", err
	}
	was, err := before(&record)
	if err != nil {
		return "", "", err
	}
	r, err := k.runtime(ctx, name)
	if isUnsupported(err) {
		return declaration.Released, noRuntime, nil
	}
	note := ""
	if err == nil {
		note, err = k.remove(ctx, r, name, was)
	}
	if err != nil {
		return "", "", fmt.Errorf("cannot remove container %q: %w", name, err)
	}
	return declaration.Removed, note, nil
}

const noRuntime = "there is no container runtime here any more"

// Parting says why Remove would release a container.
func (k *Kind) Parting() func(context.Context, resource.Record) (string, error) {
	return func(ctx context.Context, record resource.Record) (string, error) {
		name, err := key(record)
		if err != nil {
			return "", err
		}
		if _, err = k.runtime(ctx, name); isUnsupported(err) {
			return noRuntime, nil
		}
		if err != nil {
			err = fmt.Errorf("cannot remove container %q: %w", name, err)
		}
		return "", err
	}
}

func (k *Kind) remove(ctx context.Context, r *runtime, name string, was *other) (note string, err error) {
	ours, err := r.list(ctx, labelName+"="+name)
	if err != nil {
		return "", err
	}
	for _, c := range ours {
		// It may end in order; one that cannot be stopped is removed all the same.
		if err := r.stop(ctx, c.ID); err != nil && !isRefusal(err) {
			return "", err
		}
		if err := r.remove(ctx, c.ID); err != nil {
			return "", err
		}
	}
	if was != nil {
		if note, err = r.giveBack(ctx, name, was); err != nil {
			return "", err
		}
	}
	return note, k.prune(ctx, r)
}

// giveBack gives somebody's container its name again, and starts it if it ran.
func (r *runtime) giveBack(ctx context.Context, name string, was *other) (note string, err error) {
	c, err := r.inspectAny(ctx, was.ID)
	if err != nil {
		return "", err
	}
	if c == nil {
		return "the container that was there before is gone", nil
	}
	if c.Name == "/"+name+suffixBefore {
		taken, err := r.inspect(ctx, name)
		if err != nil {
			return "", err
		}
		if taken != nil {
			return fmt.Sprintf("what was there before stays as %q: the name is taken", name+suffixBefore), nil
		}
		if was.Restart != "" {
			if err := r.setRestart(ctx, c.ID, was.Restart); err != nil {
				return "", err
			}
		}
		if err := r.rename(ctx, c.ID, name); err != nil {
			return "", err
		}
	} else if c.Name != "/"+name {
		return "", nil // somebody gave it another name
	}
	if !was.Running {
		return "", nil
	}
	return "", r.start(ctx, c.ID)
}
