package pack

import (
	"bytes"
	"fmt"
	"path/filepath"

	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/release/internal/build"
)

// config reads what .goreleaser.yaml of the source says.
func (r Release) config() (build.Config, error) {
	return build.Read(filepath.Join(r.Source, build.ConfigName))
}

// admit holds that a program is of this release, and made as the release will
// state that it was.
func (r Release) admit(config build.Config, p Program) error {
	if p.Version != r.Version {
		return fault.Refusedf("cannot pack %q: it says that it is %s, not %s", p.Path, p.Version, r.Version).
			Hint("give --version %s, or compile it again", p.Version)
	}
	if err := config.Hold(p.ID, build.Architectures[p.Architecture], bytes.NewReader(p.content)); err != nil {
		return fmt.Errorf("cannot pack %q: %w", p.Path, err)
	}
	return nil
}
