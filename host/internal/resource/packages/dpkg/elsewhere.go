package dpkg

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/nox-mesh/nox-mesh/host/internal/resource/packages/database"
)

const maxConf = 1 << 20

// An excluder is the path-exclude and path-include of dpkg.cfg(5): the last
// that matches decides. Images of containers leave out documentation so, and
// dpkg lists it all the same.
type excluder []exclusion

type exclusion struct {
	glob    database.Glob
	exclude bool
}

func (e excluder) excludes(p string) bool {
	for _, x := range slices.Backward(e) {
		if x.glob.Match(p) {
			return x.exclude
		}
	}
	return false
}

func (m *Manager) leftOut() (excluder, error) {
	const folder = "/etc/dpkg/dpkg.cfg.d"
	entries, err := os.ReadDir(m.layout.Path(folder))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("cannot read the configuration of dpkg: %w", err)
	}
	var files []string
	for _, e := range entries {
		files = append(files, m.layout.Path(path.Join(folder, e.Name())))
	}
	var out excluder
	for _, f := range append(files, m.layout.Path("/etc/dpkg/dpkg.cfg")) {
		b, err := database.ReadFile(f, maxConf)
		if err != nil {
			return nil, fmt.Errorf("cannot read the configuration of dpkg: %w", err)
		}
		for line := range strings.Lines(string(b)) {
			line = strings.TrimSpace(line)
			i := strings.IndexAny(line, "= \t")
			if i < 0 || line[0] == '#' {
				continue
			}
			value := strings.Trim(line[i+1:], "\"' \t=")
			switch line[:i] {
			case "path-exclude":
				out = append(out, exclusion{database.ParseGlob(value), true})
			case "path-include":
				out = append(out, exclusion{database.ParseGlob(value), false})
			}
		}
	}
	return out, nil
}

// diversions says where files of the package lie that another package, or the
// administrator (":"), took the place of (dpkg-divert(1)). The file has three
// lines for each: from, to, by whom.
func (m *Manager) diversions(name string) (map[string]string, error) {
	b, err := database.ReadFile(m.path("diversions"), maxList)
	if err != nil {
		return nil, fmt.Errorf("cannot read the package database: %w", err)
	}
	lines := strings.Split(strings.TrimRight(string(b), "\n"), "\n")
	out := map[string]string{}
	for i := 0; i+2 < len(lines); i += 3 {
		if lines[i+2] != name {
			out[database.Clean(lines[i])] = database.Clean(lines[i+1])
		}
	}
	return out, nil
}
