package build

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/nox-mesh/nox-mesh/internal/child"
	"github.com/nox-mesh/nox-mesh/internal/fault"
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

// CommitTime returns when the commit of the source tree at source was made, in seconds
// since 1970: the counter of a release.
func CommitTime(ctx context.Context, source string) (uint64, error) {
	none := func(err error) error {
		return fault.Failedf("cannot take the counter from the commit: %w", err).Hint("give --counter N")
	}
	git, err := exec.LookPath("git")
	if err == nil {
		git, err = filepath.Abs(git)
	}
	if err != nil {
		return 0, none(err)
	}
	res, err := child.Run(ctx, child.Command{
		Path: git, Args: []string{"log", "-1", "--no-show-signature", "--format=%ct"}, Dir: source,
		Env: []string{"HOME=" + os.Getenv("HOME")},
	})
	if err != nil {
		return 0, none(err)
	}
	n, err := strconv.ParseUint(strings.TrimSpace(string(res.Stdout)), 10, 63)
	if err != nil {
		return 0, none(err)
	}
	return n, nil
}
