package command

import (
	"fmt"

	"github.com/nox-mesh/nox-mesh/installer"
)

// twice is the warning, if any, that both a tarball and a package installed the
// host.
func (p *program) twice() []string {
	l, err := p.layout()
	if err != nil {
		return nil
	}
	remedy, twice := installer.Twice(l)
	if !twice {
		return nil
	}
	return []string{fmt.Sprintf("the host is installed twice, by a tarball and by a package, and the tarball's runs; %s ends that", remedy)}
}
