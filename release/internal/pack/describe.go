package pack

import (
	"cmp"
	"context"
	"runtime"

	"github.com/nox-mesh/nox-mesh/release/internal/arch/product"
	"github.com/nox-mesh/nox-mesh/release/internal/build"
)

// Native is the architecture of this machine, or "" when there are no releases
// for it.
func Native() string {
	for arch, goarch := range build.Architectures {
		if goarch == runtime.GOARCH {
			return arch
		}
	}
	return ""
}

// describe takes down what the programs say of themselves: manual pages and
// completions, which only a program for this machine can be asked for.
func (p *packing) describe(ctx context.Context, programs map[string]map[string]Program) error {
	p.texts = map[string]product.Texts{}
	for _, id := range Contents {
		texts, err := product.Describe(ctx, cmp.Or(programs[Native()][id].Path, p.Describer[id]))
		if err != nil {
			return err
		}
		p.texts[id] = texts
	}
	return nil
}
