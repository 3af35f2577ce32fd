package main

import "github.com/nox-mesh/nox-mesh/release/internal/check"

// The files that are about the release.
const (
	releaseName = check.ManifestName
	sumsName    = check.SumsName
)

// finish writes SHA256SUMS, then release.json, both signed.
func (r *release) finish() (*check.Manifest, error) {
	m := &check.Manifest{Schema: 1, Version: r.version, Counter: r.counter, Go: r.compiler.GoVersion, Files: r.files}
	if err := r.signer.written(r.out, sumsName, m.Sums()); err != nil {
		return nil, err
	}
	b, err := m.Encode()
	if err != nil {
		return nil, err
	}
	return m, r.signer.written(r.out, releaseName, b)
}
