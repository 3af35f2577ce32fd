package command

import (
	"context"

	"github.com/nox-mesh/nox-mesh/host/internal/service"
)

// asker asks the host what the installer must know of it.
type asker struct{ p *program }

// Owns implements installer.Owner.
func (a asker) Owns(ctx context.Context) (n int, err error) {
	err = a.p.ask(ctx, func(h service.Host) error {
		list, err := h.Owned(ctx)
		n = len(list)
		return err
	})
	return n, err
}

// Pass implements installer.Passer.
func (a asker) Pass(ctx context.Context) error {
	return a.p.ask(ctx, func(h service.Host) error {
		_, err := h.Pass(ctx)
		return err
	})
}
