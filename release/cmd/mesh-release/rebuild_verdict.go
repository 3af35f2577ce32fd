package main

import (
	"fmt"
	"path"
	"strings"

	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/internal/cli"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/release/internal/pack"
)

// rebuilt is what came of building a release again.
type rebuilt struct {
	Release string `json:"release"`
	Version string `json:"version"`
	// Same and Different are how many files are the same bytes, or not.
	Same      int `json:"same"`
	Different int `json:"different"`
	// Taken is in how many of those that are the same a signature was taken from
	// the release.
	Taken int          `json:"signatures_taken"`
	Files []comparison `json:"files"`
}

// verdict counts; taken says that whoever built again had no keys.
func verdict(dir string, m pack.Manifest, all []comparison, taken bool) rebuilt {
	r := rebuilt{Release: dir, Version: m.Version, Files: all}
	for i, c := range all {
		if !c.Same {
			r.Different++
			continue
		}
		r.Same++
		if taken && signed(c.Name) {
			all[i].Taken = true
			r.Taken++
		}
	}
	return r
}

// signed reports whether a file of a release is a signature or has one within.
func signed(name string) bool {
	for _, end := range []string{trust.SignatureSuffix, trust.PackageSignatureSuffix, ".tar.gz", ".bundle.tar"} {
		if strings.HasSuffix(name, end) {
			return true
		}
	}
	// The databases hold the signatures of the packages.
	base := path.Base(name)
	return strings.HasPrefix(base, "nox-mesh.db") || strings.HasPrefix(base, "nox-mesh.files")
}

func (p *program) printRebuilt(r rebuilt) error {
	if err := p.printFiles(r); err != nil {
		return err
	}
	all := cli.Count(len(r.Files), "file", "files")
	if r.Different > 0 {
		return fault.Failedf("cannot build release %q again: %d of %s differ", r.Release, r.Different, all)
	}
	if p.json {
		return nil
	}
	how := "with signatures made again"
	if r.Taken > 0 {
		how = fmt.Sprintf("in %d of them with the signatures of the release, which cover what was built", r.Taken)
	}
	if err := p.print(""); err != nil {
		return err
	}
	return p.print("%s: release %s built again: %s byte by byte the same, %s", r.Release, r.Version, all, how)
}

func (p *program) printFiles(r rebuilt) error {
	if p.json {
		return cli.JSON(p.std.Out, r)
	}
	var rows [][]string
	for _, c := range r.Files {
		is := "same"
		if !c.Same {
			is = "differs"
		}
		rows = append(rows, []string{c.Name, is, c.How})
	}
	return cli.Table(p.std.Out, []string{"FILE", "BUILT AGAIN", "WHERE"}, rows)
}
