package main

import (
	"bytes"
	"fmt"

	"github.com/nox-mesh/nox-mesh/internal/cli"
)

// The files that are about the release.
const (
	releaseName = "release.json"
	sumsName    = "SHA256SUMS"
)

// A releaseManifest is release.json: what a release consists of.
type releaseManifest struct {
	Schema  int    `json:"schema"`
	Version string `json:"version"`
	// Counter grows with each release; bundles carry the same.
	Counter uint64 `json:"counter"`
	// Go is the toolchain that gives the same bytes again.
	Go    string     `json:"go"`
	Files []artefact `json:"files"`
}

type artefact struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// finish writes SHA256SUMS, then release.json, both signed.
func (r *release) finish() (*releaseManifest, error) {
	var sums bytes.Buffer
	for _, f := range r.files {
		fmt.Fprintf(&sums, "%s  %s\n", f.SHA256, f.Name)
	}
	if err := r.signer.written(r.out, sumsName, sums.Bytes()); err != nil {
		return nil, err
	}
	m := &releaseManifest{Schema: 1, Version: r.version, Counter: r.counter, Go: r.compiler.GoVersion, Files: r.files}
	var b bytes.Buffer
	if err := cli.JSON(&b, m); err != nil {
		return nil, err
	}
	return m, r.signer.written(r.out, releaseName, b.Bytes())
}
