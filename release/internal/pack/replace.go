package pack

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/internal/durable"
	"github.com/nox-mesh/nox-mesh/release/internal/place"
)

// CheckOut holds that a release can take the place of what is in out, before
// anything is compiled for it.
func CheckOut(out string, policy *trust.Policy) error {
	p, err := place.Open(out, false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		defer p.Close()
		err = p.NotWhereWeAre()
	}
	if err == nil {
		err = p.Check()
	}
	if err == nil {
		err = ours(p.Path, policy)
	}
	if err != nil {
		return fmt.Errorf("cannot write %q: %w", out, err)
	}
	return nil
}

// replace fills a new directory and puts it in the place of out.
func replace(ctx context.Context, out string, policy *trust.Policy, fill func(dir string) error) error {
	p, err := place.Open(out, true)
	if err != nil {
		return err
	}
	defer p.Close()
	if err := p.NotWhereWeAre(); err != nil {
		return err
	}
	if err := place.Lock(ctx, p); err != nil {
		return err
	}
	if err := p.Begin(); err != nil {
		return err
	}
	if err := ours(p.Path, policy); err != nil {
		return err
	}
	return p.Replace(func(next *durable.Dir) error { return fill(next.Name()) })
}
