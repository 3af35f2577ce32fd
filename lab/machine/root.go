package machine

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/nox-mesh/nox-mesh/internal/durable"
)

// basePackages make a small Debian with systemd, pacman, and what a person
// would use to look around.
const basePackages = "systemd,systemd-sysv,dbus,iproute2,pacman-package-manager,gnupg,procps,curl,ca-certificates"

// recipe is the command that makes a root, its folder added last.
func recipe(packages string) []string {
	return []string{"mmdebstrap", "--mode=root", "--variant=minbase", "--include=" + packages, "bookworm"}
}

// preparedRoot returns the root with these packages, which machines share, and
// makes it when it is not there. Another recipe is another root. The caller
// holds the cache's lock.
func preparedRoot(cache, packages string) (string, error) {
	sum := sha256.Sum256([]byte(strings.Join(recipe(packages), " ")))
	root := filepath.Join(cache, "root-"+hex.EncodeToString(sum[:6]))
	if _, err := os.Stat(root); err == nil {
		return root, nil
	}
	// Half of one, of a run that was killed.
	half := root + ".half"
	if err := os.RemoveAll(half); err != nil {
		return "", err
	}
	// Its mounts are in a mount namespace of its own, and go with it.
	args := append([]string{"--mount", "--"}, append(recipe(packages), half)...)
	cmd := exec.Command("unshare", args...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", errors.Join(fmt.Errorf("cannot make the machines' root: %w: %s", err, lastLines(out, 10)), os.RemoveAll(half))
	}
	return root, durable.Rename(half, root)
}

func lastLines(b []byte, n int) string {
	lines := bytes.Split(bytes.TrimSpace(b), []byte("\n"))
	return string(bytes.Join(lines[max(0, len(lines)-n):], []byte("\n")))
}
