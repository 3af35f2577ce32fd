package packages

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/host/internal/resource"
	"github.com/nox-mesh/nox-mesh/host/internal/resource/packages/command"
	"github.com/nox-mesh/nox-mesh/host/internal/resource/packages/database"
	"github.com/nox-mesh/nox-mesh/internal/layout"
)

// Remove implements resource.Kind.
func (k *Kind) Remove(ctx context.Context, record resource.Record) (declaration.Outcome, string, error) {
	name, err := nameOf(record)
	if err != nil {
		return "", "", err
	}
	out, note, err := k.remove(ctx, name, record)
	if err != nil {
		return "", "", fmt.Errorf("cannot remove package %q: %w", name, err)
	}
	return out, note, nil
}

func (k *Kind) remove(ctx context.Context, name string, record resource.Record) (declaration.Outcome, string, error) {
	is, why, err := k.stays(name, record)
	if err != nil {
		return "", "", err
	}
	if why != "" {
		return declaration.Released, why, nil
	}
	hand, err := k.hand(name)
	if err != nil {
		return "", "", err
	}
	if !is.Installed && hand == nil {
		return declaration.Removed, "", nil
	}
	err = k.alone(ctx, name, func() error { return k.takeAway(ctx, name, record) })
	return declaration.Removed, k.leftBeside(is.Files), err
}

// stays says why what is no longer declared is let go of, or "", and what is
// there. The error is a Held when somebody holds it.
func (k *Kind) stays(name string, record resource.Record) (is database.Package, why string, err error) {
	if name == own {
		return is, "the host itself stays", nil
	}
	if record.Adopted || record.Before != nil && !slices.Equal(record.Before, []byte("null")) {
		return is, "it was installed before this host came", nil
	}
	if lacking := k.choose(); lacking != "" {
		return is, "", errors.New(lacking)
	}
	switch is, err = k.Manager.Look(name); {
	case err != nil:
		return is, "", err
	case k.isHost(is):
		return is, "the host itself stays: it is of this package", nil
	case is.Held != "" && is.Installed:
		return is, "", resource.Held{Why: is.Held}
	}
	return is, "", nil
}

// Parting says why Remove would release a package.
func (k *Kind) Parting() func(context.Context, resource.Record) (string, error) {
	return func(_ context.Context, record resource.Record) (string, error) {
		name, err := nameOf(record)
		if err == nil {
			var why string
			if _, why, err = k.stays(name, record); err == nil {
				return why, nil
			}
			err = fmt.Errorf("cannot remove package %q: %w", name, err)
		}
		return "", err
	}
}

func nameOf(record resource.Record) (string, error) {
	name, ok := strings.CutPrefix(record.Key, string(declaration.TypePackage)+":")
	if !ok {
		return "", fmt.Errorf("internal error: %q is no package", record.Key)
	}
	return name, nil
}

func (k *Kind) takeAway(ctx context.Context, name string, record resource.Record) error {
	before, err := k.mend(ctx, name)
	if err != nil {
		return err
	}
	if !before.Installed {
		return k.drop(name)
	}
	if before.Broken != "" {
		// dpkg does not remove what is half installed. If we have it, it is
		// finished first; if not, the manager says what it thinks of it.
		if was, err := declaration.FromSpec(record.ID, record.Spec); err == nil && was.Package != nil && was.Package.Source != "" {
			if err := k.install(ctx, was.Package); ctx.Err() != nil {
				return err
			}
		}
	}
	failed := k.handOver(name, before, func() error { return k.Manager.Remove(ctx, name) })
	is, err := k.Manager.Look(name)
	switch {
	case err != nil:
		return errors.Join(failed, err)
	case errors.As(failed, new(command.Interrupted)):
		return failed // it may be gone, and there is more to put in order
	case !is.Installed:
		return k.drop(name)
	case failed == nil:
		return errors.New("it is still installed")
	}
	return failed
}

// isHost reports whether the host's own binary is of the package.
func (k *Kind) isHost(is database.Package) bool {
	for _, f := range is.Files {
		if path.Base(f.Path) == layout.HostName && k.isBinary(f.Path) {
			return true
		}
	}
	return false
}
