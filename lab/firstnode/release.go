package firstnode

import (
	"context"
	"crypto/rand"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/nox-mesh/nox-mesh/internal/durable"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// Version is what the release of a first node calls itself.
const Version = "0.0.0-dev"

// Release makes a release for this architecture in the node's folder, and
// returns the folder its artefacts are in. The keys are in "keys" beside it, and
// their passphrase in "passphrase".
func (n *Node) Release(ctx context.Context) (string, error) {
	if err := n.claim(); err != nil {
		return "", err
	}
	_, err := n.walk(ctx, "a release", n.releaseSteps())
	return n.path("dist"), err
}

// releaseSteps make a release from the source in the current folder, with keys
// that are thrown away with the node.
func (n *Node) releaseSteps() []step {
	tool, passphrase := n.path("bin/mesh-release"), n.path("passphrase")
	var source string
	return []step{
		{"compile mesh-release", func(ctx context.Context) error {
			var err error
			if source, err = n.source(ctx); err != nil {
				return err
			}
			_, err = n.run(ctx, nil, "go", "build", "-C", source, "-o", tool, "./release/cmd/mesh-release")
			return err
		}},
		{"make throwaway keys", func(ctx context.Context) error {
			if err := durable.WriteFile(passphrase, []byte(rand.Text()+"\n"), 0o600); err != nil {
				return err
			}
			_, err := n.run(ctx, nil, tool, "keys", "init", n.path("keys"), "--passphrase-file", passphrase)
			return err
		}},
		{"compile, pack and sign the release", func(ctx context.Context) error {
			_, err := n.run(ctx, nil, tool, "build", "--source", source,
				"--version", Version, "--arch", arch(),
				// Not the time of the commit: the source may have none, or be changed since.
				"--counter", strconv.FormatInt(n.Clock.Now().Unix(), 10), "--out", n.path("dist"), "--keys", n.path("keys"), "--passphrase-file", passphrase)
			return err
		}},
	}
}

// source returns the folder of the module, which the current one is in.
func (n *Node) source(ctx context.Context) (string, error) {
	const module = "github.com/nox-mesh/nox-mesh"
	if _, err := exec.LookPath("go"); err != nil {
		return "", fault.Failedf("there is no Go here").Hint("install Go 1.26 or newer")
	}
	out, err := n.run(ctx, nil, "go", "list", "-m", "-f", "{{.Path}} {{.Dir}}")
	if err != nil {
		return "", err
	}
	path, dir, _ := strings.Cut(strings.TrimSpace(out), " ")
	if path != module || !filepath.IsAbs(dir) {
		return "", fault.Usagef("this folder is not in the source of %s", module).Hint("change to it first")
	}
	return dir, nil
}

// arch is this machine's architecture as the release tool spells it.
func arch() string {
	if runtime.GOARCH == "arm64" {
		return "aarch64"
	}
	return "x86_64"
}
