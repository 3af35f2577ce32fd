package cosign

import (
	"os"
	"os/exec"
	"path"
	"strings"
	"testing"
)

// programs takes the programs out of the release: what an SBOM is about.
func (b *bench) programs() {
	b.t.Helper()
	for archive, member := range map[string]string{
		"dist/nox-mesh-host-1.0.0-linux-x86_64.tar.gz":                    "nox-mesh-host-1.0.0/mesh-host",
		"dist/arch/x86_64/nox-mesh-controller-1.0.0-1-x86_64.pkg.tar.zst": "usr/bin/mesh-controller",
	} {
		c := exec.Command("tar", "-xaf", archive, "--transform", "s,.*/,,", member)
		c.Dir = b.dir
		if out, err := c.CombinedOutput(); err != nil {
			b.t.Fatalf("%v: %s", err, out)
		}
	}
}

// TestStatements are the SBOMs and the provenance. cosign is asked about one
// artefact at a time; mesh-release reads the whole release with the same change
// in it.
func TestStatements(t *testing.T) {
	const (
		host       = "dist/mesh-host-1.0.0-linux-x86_64.cdx.sigstore.json"
		controller = "dist/mesh-controller-1.0.0-linux-x86_64.cdx.sigstore.json"
		provenance = "dist/nox-mesh-1.0.0.provenance.sigstore.json"
		tarball    = "dist/nox-mesh-host-1.0.0-linux-x86_64.tar.gz"
		bundle     = "dist/nox-mesh-1.0.0-linux-x86_64.bundle.tar"
		pkg        = "dist/arch/x86_64/nox-mesh-host-1.0.0-1-x86_64.pkg.tar.zst"
		ctlPkg     = "dist/arch/x86_64/nox-mesh-controller-1.0.0-1-x86_64.pkg.tar.zst"
		sbom, slsa = "cyclonedx", "slsaprovenance1"
	)
	for _, s := range []struct {
		statement, kind, other string
		// artefact is what cosign is shown, in the file of the release.
		artefact, in string
	}{
		{host, sbom, controller, "mesh-host", tarball},
		{controller, sbom, host, "mesh-controller", ctlPkg},
		{provenance, slsa, host, "mesh-host", tarball},
		{provenance, slsa, host, tarball, tarball},
		{provenance, slsa, host, bundle, bundle},
		{provenance, slsa, host, pkg, pkg},
	} {
		name := map[string]string{sbom: "SBOM", slsa: "provenance"}[s.kind] + " of " + path.Base(s.artefact)
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.programs()
			keep := map[string]string{}
			for _, file := range []string{s.statement, s.artefact, s.in} {
				keep[file] = b.get(file)
			}
			for _, c := range []struct {
				what, keys, want string
				change           func()
			}{
				{"as it is", "keys", accepts, func() {}},
				{"a flipped byte of the artefact", "keys", refuses, func() {
					b.flip(s.artefact)
					if s.in != s.artefact {
						b.flip(s.in)
					}
				}},
				{"a flipped byte of the statement", "keys", refuses, func() { b.flip(s.statement) }},
				{"another key", "strangers", refuses, func() {}},
				{"another statement", "keys", refuses, func() { b.put(s.statement, b.get(s.other)) }},
				{"a statement that is a signature", "keys", refuses, func() { b.put(s.statement, b.get("dist/release.json.sigstore.json")) }},
			} {
				c.change()
				theirs := b.sigstore("verify-blob-attestation", "--key", c.keys+"/release.pub", "--bundle", s.statement,
					"--insecure-ignore-tlog", "--type", s.kind, s.artefact)
				b.judged(name+": "+c.what, theirs, b.release("verify", "--trust", c.keys, "dist"), c.want, c.want)
				for file, content := range keep {
					b.put(file, content)
				}
			}
		})
	}
}

// TestAWitness: mesh-release verify calls cosign by itself, and says that it did
// not when it is not there.
func TestAWitness(t *testing.T) {
	b := newBench(t)
	verify := func(path string) answer {
		// In a namespace without network, with no other witness in the PATH.
		c := b.command("unshare", "-n", b.mesh(), "verify", "--trust", "keys", "dist")
		c.Env = append(c.Env, "PATH="+path)
		return b.run(c)
	}
	tools := b.path("tools")
	if err := os.Mkdir(tools, 0o755); err != nil {
		t.Fatal(err)
	}
	absent := b.must(verify(tools))
	if !strings.Contains(absent, "\n3 of 3 witnesses skipped\n") || !strings.Contains(absent, "skipped: cosign is not here\n") {
		t.Errorf("without cosign:\n%s", absent)
	}
	if err := os.Symlink(b.cosign, b.path("tools/cosign")); err != nil {
		t.Fatal(err)
	}
	// release.json, SHA256SUMS, the tarball, two SBOMs, the provenance.
	present := b.must(verify(tools))
	if !strings.Contains(present, "\n2 of 3 witnesses skipped\n") || !strings.Contains(strings.Join(strings.Fields(present), " "), " cosign v"+shared.version+" 6 ") {
		t.Errorf("with cosign:\n%s", present)
	}
	if err := os.Remove(b.path("tools/cosign")); err != nil {
		t.Fatal(err)
	}
	b.put("tools/cosign", "#!/bin/sh\n[ \"$1\" != version ] || exec echo '{\"gitVersion\": \"v3.9.9\"}'\necho Error: we know better >&2\nexit 1\n")
	if err := os.Chmod(b.path("tools/cosign"), 0o755); err != nil {
		t.Fatal(err)
	}
	if a := verify(tools); a.code != 3 || !strings.Contains(a.out, "cosign refuses it: exit status 1: Error: we know better") {
		t.Errorf("one that refuses: exit %d\n%s", a.code, a.out)
	}
}
