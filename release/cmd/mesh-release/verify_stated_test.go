package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nox-mesh/nox-mesh/release/internal/attest"
	"github.com/nox-mesh/nox-mesh/release/internal/signing"
)

func stated(t *testing.T) {
	s := publisher(t)
	const (
		sbom = "dist/mesh-host-1.0.0-linux-x86_64.cdx.json"
		of   = "dist/mesh-host-1.0.0-linux-x86_64.cdx.sigstore.json"
		how  = "dist/nox-mesh-1.0.0.provenance.sigstore.json"
	)
	good := map[string][]byte{sbom: read(t, sbom), of: read(t, of), how: read(t, how)}
	p := attest.Program{Name: "mesh-host", Version: "1.0.0", Time: time.Unix(1700000000, 0)}
	policy := s.Policy
	st, err := attest.Verify(good[how], policy)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range st.Subjects {
		if x.Name == "x86_64/mesh-host" {
			p.SHA256 = x.SHA256
		}
	}
	signed := func(s *signing.Signer, st attest.Statement) []byte {
		t.Helper()
		b, err := attest.Sign(s.Key, st)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	other := bytes.Replace(good[sbom], []byte(`"std"`), []byte(`"STD"`), 1)
	wrong := p
	wrong.SHA256 = strings.Repeat("0", 64)
	less := st
	less.Subjects = less.Subjects[1:]
	more := st
	more.Subjects = append(slices.Clone(st.Subjects), attest.Subject{Name: "zzz", SHA256: wrong.SHA256})
	later := st
	later.Predicate = bytes.Replace(st.Predicate, []byte("1700000000"), []byte("1700000001"), 1)
	mesh(t, 0, "keys", "init", "strangers")
	stranger := &program{quiet: true, keys: "strangers", secret: []byte(testPassphrase)}
	theirs, err := stranger.signer()
	if err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct {
		file    string
		content []byte
		says    string
	}{
		"an SBOM that was not signed so": {sbom, other, "does not say what the SBOM says"},
		"another program":                {of, signed(s, attest.StateSBOM(good[sbom], wrong)), "not about"},
		"somebody else's statement":      {of, signed(theirs, attest.StateSBOM(good[sbom], p)), "unknown key"},
		"a provenance of less":           {how, signed(s, less), "provenance"},
		"a provenance of more":           {how, signed(s, more), `"zzz"`},
		"another build":                  {how, signed(s, later), "not about a build of this release"},
		"an SBOM for a provenance":       {how, good[of], "provenance"},
	} {
		write(t, c.file, c.content)
		resign(t, s)
		refused(t, what, c.says)
		write(t, c.file, good[c.file])
	}
	resign(t, s)
	if err := verify(t); err != nil {
		t.Error(err)
	}
}
