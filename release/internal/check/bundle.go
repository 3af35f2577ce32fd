package check

import (
	"context"

	"github.com/nox-mesh/nox-mesh/bundle"
)

func (r *reading) bundles(ctx context.Context) error {
	members := 0
	err := r.each(r.manifest.bundleName, func(arch, name string) error {
		f, err := r.open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		info, err := bundle.Read(ctx, f, bundle.Options{Policy: r.Policy})
		if err != nil {
			return wrong(name, err)
		}
		if info.Name != "nox-mesh" || info.Version != r.manifest.Version || info.Architecture != arch || info.Counter != r.manifest.Counter {
			return bad(name, "it is %s %s for %s, counter %d", info.Name, info.Version, info.Architecture, info.Counter)
		}
		members += len(info.Members)
		has := false
		for _, m := range info.Members {
			for _, program := range packages {
				if program == "" || m.Title != program {
					continue
				}
				has = true
				if err := r.same(arch, program, m.Digest.Encoded(), name); err != nil {
					return err
				}
			}
		}
		if !has {
			return bad(name, "it holds no program of the release")
		}
		return nil
	})
	if err != nil {
		return err
	}
	r.tell("bundles", len(r.report.Architectures), "signature, every member by its digest, nothing after the end")
	r.tell("members of bundles", members, "size and SHA-256 as the signed index says")
	return nil
}
