package profile

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/nox-mesh/nox-mesh/internal/layout"
)

// PackageManager is that of what is under the layout's root: "pacman", "apt" or
// "". Unlike a fact of a Profile it has no deadline, and is for who has to know.
func PackageManager(l layout.Layout) string { return source{files: l}.packageManager() }

// packageManager goes by the distribution first: on many Debian machines
// pacman is a mere tool, and the other way round.
func (s source) packageManager() string {
	release, _ := s.release()
	pacman := exists(s.files, "/usr/bin/pacman")
	apt := exists(s.files, "/usr/bin/apt-get", "/usr/bin/dpkg")
	for _, id := range strings.Fields(release["ID"] + " " + release["ID_LIKE"]) {
		switch {
		case (id == "arch" || id == "archarm") && pacman:
			return "pacman"
		case (id == "debian" || id == "ubuntu") && apt:
			return "apt"
		}
	}
	switch {
	case pacman && exists(s.files, pacmanLocal):
		return "pacman"
	case apt && exists(s.files, dpkgStatus):
		return "apt"
	}
	return ""
}

const (
	pacmanLocal = "/var/lib/pacman/local"
	dpkgStatus  = "/var/lib/dpkg/status"
	// The most that is read of either: entries, bytes.
	maxPackages = 200_000
	maxStatus   = 256 << 20
)

// packageManagerVersion is what the package manager's database says of itself.
// Unlike the program's own --version that can be read of a tree whose programs
// cannot run here, and starts nothing. The readers of the package kind are not
// used: they are the host's behaviour, which the control plane must not get with
// this package, and what is asked here is one line.
func (s source) packageManagerVersion(ctx context.Context) (version string, err error) {
	switch s.packageManager() {
	case "pacman":
		version, err = pacmanVersion(ctx, s.files.Path(pacmanLocal))
	case "apt":
		version, err = aptVersion(ctx, s.files.Path(dpkgStatus))
	default:
		return "", nil
	}
	if version == "" && err == nil {
		err = errors.New("its own database does not name it")
	}
	return version, err
}

// pacmanVersion looks for NAME-VERSION-RELEASE of pacman; neither of the last
// two holds a dash (PKGBUILD(5)).
func pacmanVersion(ctx context.Context, dir string) (string, error) {
	d, err := openDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer d.Close()
	for seen := 0; seen < maxPackages; {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		names, err := d.Readdirnames(1000)
		for _, name := range names {
			if version, ok := strings.CutPrefix(name, "pacman-"); ok && strings.Count(version, "-") == 1 {
				// "pacman-contrib-1.10.6-1" has one dash more, "pacman-git-1" has no version
				if v := clean(version); v != "" && v[0] >= '0' && v[0] <= '9' {
					return v, nil
				}
			}
		}
		seen += len(names)
		if errors.Is(err, io.EOF) {
			return "", nil
		}
		if err != nil {
			return "", err
		}
	}
	return "", fmt.Errorf("%q has more than %d entries", dir, maxPackages)
}

// aptVersion reads the paragraphs of dpkg's database (deb-control(5)) up to
// that of apt.
func aptVersion(ctx context.Context, path string) (string, error) {
	f, err := openRegular(path)
	if err != nil || f == nil {
		return "", err
	}
	defer f.Close()
	all := &io.LimitedReader{R: f, N: maxStatus}
	r := bufio.NewReaderSize(all, 64<<10)
	var here, rest bool
	for lines := 0; ; lines++ {
		if lines%4096 == 0 && ctx.Err() != nil {
			return "", ctx.Err()
		}
		b, err := r.ReadSlice('\n')
		if err == io.EOF && all.N == 0 {
			return "", fmt.Errorf("%q is larger than %d MiB", path, maxStatus>>20)
		}
		if err == io.EOF {
			return "", nil
		}
		if err != nil && err != bufio.ErrBufferFull {
			return "", err
		}
		begins := !rest
		rest = err == bufio.ErrBufferFull // what follows is of the same line
		switch {
		case !begins:
		case len(bytes.TrimSpace(b)) == 0:
			here = false
		case string(b) == "Package: apt\n":
			here = true
		case here && bytes.HasPrefix(b, []byte("Version: ")):
			return clean(string(b[len("Version: "):])), nil
		}
	}
}
