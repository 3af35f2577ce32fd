package main

import (
	"errors"
	"io/fs"

	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// trusted reads the directory that --trust names.
func trusted(dir string) (*trust.Policy, error) {
	policy, err := trust.LoadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.Failedf("%w", err).Hint("give the directory that \"mesh-release keys export\" makes")
	}
	return policy, err
}
