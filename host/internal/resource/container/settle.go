package container

import (
	"context"
	"fmt"
)

// settled ends what a host that was killed in the middle of a replacement left,
// and returns the container that has the name then.
//
//	NAME     NAME.nox-last   where it was killed        what is done
//	old      -               before the renames         NAME.nox-next is removed
//	-        old             between the renames        old gets its name back
//	new      old             before the old one went    new proves itself, as it would have
//
// The first replacement of somebody else's container has it under
// NAME.nox-before; once its name is new's and the store knows, it stays there.
func (j *job) settled(ctx context.Context) (*inspected, error) {
	if err := j.discard(ctx, j.name+suffixNext); err != nil {
		return nil, err
	}
	current, err := j.inspect(ctx, j.name)
	if err != nil {
		return nil, err
	}
	old, err := j.parked(ctx)
	if err != nil {
		return nil, err
	}
	if current, err = j.strays(ctx, current, old); err != nil || old == nil {
		return current, err
	}
	switch {
	case current == nil:
		return j.back(ctx, *old)
	case !current.madeFor(j.name):
		// Somebody made one in the meantime.
		return nil, fmt.Errorf("%q exists and is not ours, and the one that was is called %q", j.name, old.name)
	}
	different, err := j.k.differences(ctx, j.runtime, j.def, current)
	if err != nil {
		return nil, err
	}
	if len(different) > 0 {
		// It is to be replaced anyway, by something that can be gone back from.
		if life := j.life(current); life.difference == "" && life.failing == "" {
			return current, j.drop(ctx, *old)
		}
		if err := j.runtime.remove(ctx, current.ID); err != nil {
			return nil, err
		}
		return j.back(ctx, *old)
	}
	if err := j.prove(ctx, current.ID, *old); err != nil {
		return nil, err
	}
	return j.inspect(ctx, j.name)
}

// strays are what of ours has a name that somebody gave it: it gets its own back,
// or goes when there is another one.
func (j *job) strays(ctx context.Context, current *inspected, old *aside) (*inspected, error) {
	ours, err := j.list(ctx, labelName+"="+j.name)
	if err != nil {
		return nil, err
	}
	for _, s := range ours {
		switch {
		case current != nil && s.ID == current.ID, old != nil && s.ID == old.container.ID:
		case current == nil && old == nil:
			if err := j.rename(ctx, s.ID, j.name); err != nil {
				return nil, err
			}
			if current, err = j.inspect(ctx, j.name); err != nil {
				return nil, err
			}
		default:
			if err := j.runtime.remove(ctx, s.ID); err != nil {
				return nil, err
			}
		}
	}
	return current, nil
}

// parked is the container that was put out of the way and may have to come
// back, nil when there is none.
func (j *job) parked(ctx context.Context) (*aside, error) {
	c, err := j.inspect(ctx, j.name+suffixLast)
	if err != nil {
		return nil, err
	}
	if c != nil {
		if !c.madeFor(j.name) {
			return nil, fmt.Errorf("%q exists and is not ours", j.name+suffixLast)
		}
		return &aside{c, j.name + suffixLast, true}, nil
	}
	if j.owned {
		// What is kept of somebody's stays where it is.
		return nil, nil
	}
	if c, err = j.inspect(ctx, j.name+suffixBefore); c == nil || err != nil || !j.want.Resource.TakeOver {
		return nil, err
	}
	return &aside{c, j.name + suffixBefore, true}, nil
}

// back gives the old container its name, and starts it: what follows may fail.
func (j *job) back(ctx context.Context, old aside) (*inspected, error) {
	if err := j.rename(ctx, old.container.ID, j.name); err != nil {
		return nil, err
	}
	if err := j.start(ctx, old.container.ID); err != nil && !isRefusal(err) {
		return nil, err
	}
	return j.inspect(ctx, j.name)
}

// drop removes the old container, if it is ours.
func (j *job) drop(ctx context.Context, old aside) error {
	if !old.container.madeFor(j.name) {
		return nil
	}
	return j.runtime.remove(ctx, old.container.ID)
}

// discard removes what of ours has the name.
func (j *job) discard(ctx context.Context, name string) error {
	c, err := j.inspect(ctx, name)
	if c == nil || err != nil {
		return err
	}
	if !c.madeFor(j.name) {
		return fmt.Errorf("%q exists and is not ours", name)
	}
	return j.runtime.remove(ctx, c.ID)
}
