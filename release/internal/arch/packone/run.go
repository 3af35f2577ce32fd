package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"github.com/goreleaser/nfpm/v2"

	"github.com/nox-mesh/nox-mesh/internal/cli"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/release/internal/arch"
	"github.com/nox-mesh/nox-mesh/release/internal/arch/product"
)

func run(ctx context.Context, args []string, std cli.Stdio) error {
	work, err := os.MkdirTemp("", "packone-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	p, err := define(ctx, work, args)
	if err != nil {
		return err
	}
	m, err := arch.Write(ctx, args[len(args)-1], p)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(std.Out, m.FileName())
	return err
}

func define(ctx context.Context, work string, args []string) (arch.Package, error) {
	switch {
	case len(args) == 3 && args[0] == "nfpm":
		config, err := nfpm.ParseFile(args[1])
		return arch.Package{Info: &config.Info}, err
	case len(args) == 5 && (args[0] == "host" || args[0] == "controller"):
		s, err := spec(args[1])
		if err != nil {
			return arch.Package{}, err
		}
		s.Binary = args[2]
		if s.Texts, err = product.Describe(ctx, s.Binary); err != nil {
			return arch.Package{}, err
		}
		if args[0] == "controller" {
			return product.Controller(work, s)
		}
		if s.Roots, err = roots(args[3]); err != nil {
			return arch.Package{}, err
		}
		return product.Host(work, s)
	case len(args) == 4 && args[0] == "keyring":
		s, err := spec(args[1])
		if err != nil {
			return arch.Package{}, err
		}
		var k product.Keyring
		for name, into := range map[string]*[]byte{"nox-mesh.gpg": &k.GPG, "nox-mesh-trusted": &k.Trusted, "nox-mesh-revoked": &k.Revoked} {
			if *into, err = os.ReadFile(filepath.Join(args[2], name)); err != nil {
				return arch.Package{}, err
			}
		}
		return product.Keys(work, s, k)
	}
	return arch.Package{}, fault.Usagef("cannot pack: see the comment of packone")
}

func spec(version string) (product.Spec, error) {
	seconds, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	if err != nil {
		return product.Spec{}, fault.Usagef("cannot pack: SOURCE_DATE_EPOCH: %w", err)
	}
	license, err := os.ReadFile("LICENSE")
	if err != nil {
		return product.Spec{}, err
	}
	architecture := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
	return product.Spec{Version: version, Architecture: architecture, Time: time.Unix(seconds, 0), License: license}, nil
}

// roots reads 1.root.json … N.root.json of dir.
func roots(dir string) (chain [][]byte, err error) {
	if dir == "" {
		return nil, nil
	}
	for {
		b, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("%d.root.json", len(chain)+1)))
		if os.IsNotExist(err) && len(chain) > 0 {
			return chain, nil
		}
		if err != nil {
			return nil, err
		}
		chain = append(chain, b)
	}
}
