package module

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/name"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/state"
	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// Admit decides on a bundle before anything of it is written: may its name be a
// module's, and is it not older than what is recorded of that name for that
// architecture? A release for one architecture may come later than for another,
// so each has its own count.
func Admit(tx *state.Tx, p *state.Pushed, allowRollback bool) error {
	if !name.Valid(p.Name) {
		return fault.Refusedf("the name of bundle %q can be no module's: a name is %s", p.Name, name.Rule)
	}
	old, err := tx.Pushed(p.Name, p.Architecture)
	if err != nil {
		return err
	}
	if old != nil && p.Counter < old.Counter && !allowRollback {
		return fault.Refusedf("older than what was pushed: bundle %q for %s has counter %d, %d was pushed", p.Name, p.Architecture, p.Counter, old.Counter).
			Hint("push a newer one, or say --allow-rollback")
	}
	return nil
}

// Push records a bundle, all of whose content is in the content store, as a
// module that is not placed yet. It takes the place of the one of its name and
// architecture. It reports false when it was recorded already. has says whether
// a blob is in the content store.
func Push(tx *state.Tx, now time.Time, p state.Pushed, document []byte, allowRollback bool, has func(digest.Digest) bool) (*state.Pushed, bool, error) {
	if err := Admit(tx, &p, allowRollback); err != nil {
		return nil, false, err
	}
	old, err := tx.Pushed(p.Name, p.Architecture)
	if err != nil {
		return nil, false, err
	}
	if old != nil && old.Bundle == p.Bundle && slices.Equal(old.Signers, p.Signers) {
		return old, false, nil
	}
	d, err := declaration.Parse(document)
	if err != nil {
		return nil, false, fmt.Errorf("its declaration is of no use: %w", err)
	}
	if _, err := compose([]part{{module: p.Name, document: d}}); err != nil {
		return nil, false, err
	}
	for _, s := range d.Sources() {
		if !has(s) {
			return nil, false, fault.Refusedf("its declaration names %s, which it does not bring", s)
		}
		p.Sources = append(p.Sources, s.String())
	}
	p.Declaration, p.At = digest.FromBytes(document).String(), now
	if err := tx.PutPushed(&p); err != nil {
		return nil, false, err
	}
	return &p, true, tx.AddEvent(&state.Event{At: now, Kind: "module.pushed",
		Sentence: fmt.Sprintf("bundle %q %s (counter %d, %s) is pushed, signed by %s; it is placed nowhere yet",
			p.Name, p.Version, p.Counter, p.Architecture, strings.Join(p.Signers, ", "))})
}

// forget removes what was pushed of a name, and reports whether there was any.
func forget(tx *state.Tx, now time.Time, module string) (bool, error) {
	ps, err := tx.PushedOf(module)
	if err != nil {
		return false, err
	}
	for _, p := range ps {
		if err := tx.DeletePushed(p); err != nil {
			return false, err
		}
		err := tx.AddEvent(&state.Event{At: now, Kind: "module.undeclared",
			Sentence: fmt.Sprintf("bundle %q %s (%s), which was placed nowhere, is forgotten", p.Name, p.Version, p.Architecture)})
		if err != nil {
			return false, err
		}
	}
	return len(ps) > 0, nil
}
