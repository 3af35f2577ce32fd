package check

import (
	"cmp"
	"context"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/bundle"
	"github.com/nox-mesh/nox-mesh/host/declaration"
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
				if err := r.same(arch, program, cmp.Or(m.Content, m.Digest).Encoded(), name); err != nil {
					return err
				}
			}
		}
		if !has {
			return bad(name, "it holds no program of the release")
		}
		return declared(name, info)
	})
	if err != nil {
		return err
	}
	r.tell("bundles", len(r.report.Architectures), "signature, every member by its digest, nothing after the end")
	r.tell("members of bundles", members, "size and SHA-256 as the signed index says; declarations name each, and no other")
	return nil
}

// declared holds that the declarations of a bundle and its members are made for each
// other. A compressed file is named by what is in it: a machine that looked for the
// compressed bytes would find them, and put them in place as they are.
func declared(name string, info *bundle.Info) error {
	named := map[digest.Digest]string{}
	for _, d := range info.Declarations {
		text, err := info.Declaration(d.Digest)
		if err != nil {
			return wrong(name, err)
		}
		doc, err := declaration.Parse(text)
		if err != nil {
			return bad(name, "its declaration %q: %w", d.Title, err)
		}
		for _, resource := range doc.Resources {
			if resource.Container != nil {
				continue // images are no members: what they consist of is
			}
			for _, source := range resource.Sources() {
				named[source] = resource.ID
			}
		}
	}
	held := map[digest.Digest]bool{}
	for _, m := range info.Members {
		switch m.MediaType {
		case bundle.MediaTypeFile, bundle.MediaTypeFileZstd, bundle.MediaTypePackageArch, bundle.MediaTypePackageArchSignature:
		default:
			continue
		}
		content := cmp.Or(m.Content, m.Digest)
		held[content] = true
		if resource, ok := named[m.Digest]; ok && content != m.Digest {
			return bad(name, "resource %q names %q as it is compressed (%s), not what is in it (%s)", resource, m.Title, m.Digest, content)
		}
		if _, ok := named[content]; !ok {
			return bad(name, "no declaration names %q (%s)", m.Title, content)
		}
	}
	for source, resource := range named {
		if !held[source] {
			return bad(name, "resource %q names %s, which is not in it", resource, source)
		}
	}
	return nil
}
