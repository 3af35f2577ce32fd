package pack

import (
	"context"
	"runtime"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/nox-mesh/nox-mesh/internal/fault"
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
// completions, which only a program for this machine can be asked for. What runs
// is a copy of the bytes that were read, whatever lies where they were by now.
func (p *packing) describe(ctx context.Context) error {
	p.texts = map[string]product.Texts{}
	all := slices.Concat(p.Programs, p.Describers)
	for _, id := range Contents {
		path := ""
		i := slices.IndexFunc(all, func(of Program) bool { return of.ID == id && of.Architecture == Native() })
		if i >= 0 {
			var err error
			if path, err = p.copy(all[i]); err != nil {
				return err
			}
		}
		texts, err := product.Describe(ctx, path)
		if err != nil && noPrograms(p.work) {
			return fault.Failedf("%w", err).Hint("set TMPDIR to a directory where programs may run")
		}
		if err != nil {
			return err
		}
		p.texts[id] = texts
	}
	return nil
}

// noPrograms reports whether programs may not run where dir is (mount(8): noexec).
func noPrograms(dir string) bool {
	var st unix.Statfs_t
	return unix.Statfs(dir, &st) == nil && st.Flags&unix.ST_NOEXEC != 0
}
