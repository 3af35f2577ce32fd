package attest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/nox-mesh/nox-mesh/internal/child"
)

var commitPattern = regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`)

// Commit returns the commit of the source tree, in hex; "" when git does not
// know one, or the tree is not what the commit says: something tracked was
// changed, or there is a Go file that is not tracked.
func Commit(ctx context.Context, source string) string {
	git, err := exec.LookPath("git")
	if err == nil {
		git, err = filepath.Abs(git)
	}
	if err != nil {
		return ""
	}
	ask := func(args ...string) (string, bool) {
		res, err := child.Run(ctx, child.Command{
			Path: git, Args: args, Dir: source,
			Env: []string{"HOME=" + os.Getenv("HOME"), "GIT_OPTIONAL_LOCKS=0"},
		})
		return strings.TrimSpace(string(res.Stdout)), err == nil
	}
	head, ok := ask("rev-parse", "HEAD")
	if !ok || !commitPattern.MatchString(head) {
		return ""
	}
	for _, args := range [][]string{
		{"status", "--porcelain", "--untracked-files=no", "--", "."},
		{"ls-files", "--others", "--", "*.go"},
	} {
		if out, ok := ask(args...); !ok || out != "" {
			return ""
		}
	}
	return head
}
