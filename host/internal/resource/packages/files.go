package packages

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/nox-mesh/nox-mesh/host/internal/resource/packages/database"
)

// maxNamed is how many files are named; the others are counted.
const maxNamed = 3

// beside is what managers put beside a configuration file that somebody
// changed: pacman(8), dpkg(1), ucf(1).
var beside = []string{".pacnew", ".pacsave", ".dpkg-dist", ".dpkg-new", ".ucf-dist"}

// files says which files are not as they were packaged, and what waits beside
// those that are the administrator's.
func (k *Kind) files(ctx context.Context, all []database.File) (differences []string, note string, err error) {
	var changed []string
	for _, f := range all {
		if err := ctx.Err(); err != nil {
			return nil, "", err
		}
		if f.Config {
			continue
		}
		how, err := k.differs(ctx, f)
		if err != nil {
			return nil, "", err
		}
		if how != "" {
			changed = append(changed, fmt.Sprintf("%q %s", f.Path, how))
		}
	}
	return few(changed), k.leftBeside(all), nil
}

func few(all []string) []string {
	if n := len(all); n > maxNamed+1 {
		return append(all[:maxNamed:maxNamed], fmt.Sprintf("%d more files", n-maxNamed))
	}
	return all
}

// differs says how a file is not as packaged, or "".
func (k *Kind) differs(ctx context.Context, f database.File) (string, error) {
	name := k.Layout.Path(f.Path)
	var st unix.Stat_t
	switch err := unix.Lstat(name, &st); {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR):
		return "is missing", nil
	case err != nil:
		return "", &fs.PathError{Op: "lstat", Path: name, Err: err}
	}
	switch mode := st.Mode & unix.S_IFMT; f.Kind {
	case database.Directory:
		// A symlink in its place may be the administrator's: pacman and dpkg
		// follow it, too.
		if mode != unix.S_IFDIR && mode != unix.S_IFLNK {
			return "is no directory", nil
		}
	case database.Symlink:
		if mode != unix.S_IFLNK {
			return "is no symlink", nil
		}
		if target, err := os.Readlink(name); err != nil || f.Target != "" && target != f.Target {
			return "leads elsewhere", nil
		}
	case database.Regular:
		switch {
		case mode != unix.S_IFREG:
			return "is no regular file", nil
		case f.Size >= 0 && st.Size != f.Size:
			return "has another size", nil
		case f.Sum == "":
			return "", nil
		}
		sum, err := k.seen.sum(ctx, name, len(f.Sum), &st)
		if errors.Is(err, fs.ErrNotExist) {
			return "is missing", nil
		}
		if err != nil {
			return "", err
		}
		if sum != f.Sum {
			return "has other content", nil
		}
	}
	return "", nil
}

// leftBeside says what waits for the administrator.
func (k *Kind) leftBeside(all []database.File) string {
	var names []string
	for _, f := range all {
		if !f.Config {
			continue
		}
		for _, suffix := range beside {
			if _, err := os.Lstat(k.Layout.Path(f.Path + suffix)); err == nil {
				names = append(names, f.Path+suffix)
			}
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "configuration to look at: " + strings.Join(few(names), ", ")
}
