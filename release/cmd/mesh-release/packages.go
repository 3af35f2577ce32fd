package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/nox-mesh/nox-mesh/internal/durable"
	"github.com/nox-mesh/nox-mesh/release/internal/arch"
	"github.com/nox-mesh/nox-mesh/release/internal/arch/product"
	"github.com/nox-mesh/nox-mesh/release/internal/build"
	"github.com/nox-mesh/nox-mesh/release/internal/keys"
	"github.com/nox-mesh/nox-mesh/release/internal/repository"
)

// describe takes down what the programs say of themselves: manual pages and
// completions. They are asked of a build for the machine that makes the
// release; the texts are the same for every architecture.
func (r *release) describe(ctx context.Context, work string) error {
	native := ""
	for a, goarch := range build.Architectures {
		if goarch == runtime.GOARCH {
			native = a
		}
	}
	r.texts = map[string]product.Texts{}
	for _, id := range []string{"mesh-host", "mesh-controller"} {
		dir := filepath.Join(work, "native")
		if err := durable.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		binary, err := r.compiler.Build(ctx, id, native, r.version, dir)
		if err != nil {
			return err
		}
		if r.texts[id], err = product.Describe(ctx, binary); err != nil {
			return err
		}
	}
	return nil
}

// packages packs the programs for pacman, signs the packages, and puts them
// into the signed repository of the architecture: arch/ARCH below the release.
func (r *release) packages(ctx context.Context, architecture, work string, binaries map[string]string) error {
	license, err := os.ReadFile(filepath.Join(r.source, "LICENSE"))
	if err != nil {
		return fmt.Errorf("cannot pack for pacman: %w", err)
	}
	ring, err := keys.PacmanKeyring(r.signer.roots)
	if err != nil {
		return err
	}
	staging := filepath.Join(work, "packages-"+architecture)
	if err := durable.MkdirAll(staging, 0o700); err != nil {
		return fmt.Errorf("cannot pack for pacman: %w", err)
	}
	var files []string
	for id, lay := range map[string]func(dir string, s product.Spec) (arch.Package, error){
		"mesh-host":       product.Host,
		"mesh-controller": product.Controller,
		"keyring": func(dir string, s product.Spec) (arch.Package, error) {
			return product.Keys(dir, s, product.Keyring{GPG: ring.GPG, Trusted: ring.Trusted, Revoked: ring.Revoked})
		},
	} {
		dir := filepath.Join(work, "root-"+architecture+"-"+id)
		if err := durable.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("cannot pack for pacman: %w", err)
		}
		p, err := lay(dir, product.Spec{
			Version: r.version, Architecture: architecture, Time: time.Unix(int64(r.counter), 0), License: license,
			Binary: binaries[id], Texts: r.texts[id], Roots: r.signer.roots,
		})
		if err != nil {
			return err
		}
		m, err := arch.Write(ctx, staging, p)
		if err != nil {
			return err
		}
		file := filepath.Join(staging, m.FileName())
		if err := r.signPackage(file); err != nil {
			return err
		}
		files = append(files, file)
	}
	slices.Sort(files)
	to := filepath.Join(r.out, "arch", architecture)
	if err := durable.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return fmt.Errorf("cannot publish packages: %w", err)
	}
	if _, err := repository.Add(ctx, to, files, repository.Options{
		Signer: repoSigner{r.signer.packages}, Verifier: repoVerifier{r.signer.policy},
	}); err != nil {
		return err
	}
	return r.addAll(filepath.Join("arch", architecture))
}

// signPackage writes the .sig that pacman looks for.
func (r *release) signPackage(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("cannot sign package: %w", err)
	}
	defer f.Close()
	sig, err := keys.SignPackage(r.signer.packages, f, time.Unix(int64(r.counter), 0))
	if err != nil {
		return fmt.Errorf("cannot sign package %q: %w", path, err)
	}
	return durable.WriteFile(path+".sig", sig, 0o644)
}

// addAll takes the files of a directory into the release.
func (r *release) addAll(dir string) error {
	entries, err := os.ReadDir(filepath.Join(r.out, dir))
	if err != nil {
		return fmt.Errorf("cannot read back %q: %w", dir, err)
	}
	names := map[string]bool{}
	for _, e := range entries {
		names[filepath.Join(dir, e.Name())] = true
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if err := r.add(name); err != nil {
			return err
		}
	}
	return nil
}
