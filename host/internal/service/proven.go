package service

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/internal/version"
	"github.com/nox-mesh/nox-mesh/pkgbuild"
)

// proven is proven.json: where the version came from that proved itself last: what is
// reinstalled when a later one fails.
type proven struct {
	Digest  digest.Digest `json:"digest"`
	Version string        `json:"version"`
	// Package is the package it is of, with what was declared for it.
	Package *provenPackage `json:"package,omitempty"`
}

type provenPackage struct {
	Version   string        `json:"version"`
	Source    digest.Digest `json:"source,omitempty"`
	Signature digest.Digest `json:"signature,omitempty"`
}

func (s *Service) provenFile() string { return filepath.Join(s.Layout.LauncherDir(), "proven.json") }

// keepProven keeps where the version that runs came from.
func (s *Service) keepProven() error {
	if s.self.watch == nil || s.self.watch.Stands() {
		return nil
	}
	p := proven{Digest: s.self.watch.Digest(), Version: version.Running()}
	registered, binary, err := s.packages.Registered()
	if err != nil {
		return err
	}
	switch binary {
	default:
		return nil // of what is about to be gone over to
	case "":
	case p.Digest:
		p.Package = &provenPackage{Version: registered}
		// What was applied after it and failed says nothing of this one.
		if d := s.declaredPackage(); d != nil && s.failed() == nil && (d.Version == "" || d.Version == registered) {
			p.Package.Source, p.Package.Signature = d.Source, d.Signature
		}
	}
	var before proven
	known := readPaper(s.provenFile(), &before) && before.Digest == p.Digest && before.Version == p.Version
	if known && (before.Package == nil) == (p.Package == nil) && (p.Package == nil || *before.Package == *p.Package) {
		return nil
	}
	// One that is put back from a failed successor is declared no more: what was
	// known of it stays.
	if known && s.failed() != nil {
		return nil
	}
	return writePaper(s.provenFile(), p)
}

// putBackPackage reinstalls the package of the version that runs.
func (s *Service) putBackPackage(ctx context.Context) error {
	var p proven
	if !readPaper(s.provenFile(), &p) || p.Package == nil || s.self.watch == nil || p.Digest != s.self.watch.Digest() {
		return errors.New("which package the version that runs is of is not known")
	}
	err := s.packages.PutBack(ctx, &declaration.Package{
		Name: pkgbuild.HostPackage, Version: p.Package.Version, Source: p.Package.Source, Signature: p.Package.Signature,
	})
	if err != nil {
		return err
	}
	registered, binary, err := s.packages.Registered()
	if err == nil && binary != p.Digest {
		err = fmt.Errorf("it says %s still", registered)
	}
	if err == nil {
		s.Log.Info("the package of the version that runs is registered again", "version", registered)
	}
	return err
}

// keptForReturn is the content by which the package of the proven version could
// be put back.
func (s *Service) keptForReturn() []digest.Digest {
	var p proven
	if !readPaper(s.provenFile(), &p) || p.Package == nil || p.Package.Source == "" {
		return nil
	}
	return slices.DeleteFunc([]digest.Digest{p.Package.Source, p.Package.Signature}, func(d digest.Digest) bool { return d == "" })
}
