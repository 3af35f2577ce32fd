package pacman

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/nox-mesh/nox-mesh/host/internal/resource/packages/database"
)

const (
	config  = "/etc/pacman.conf"
	maxConf = 1 << 20
	// maxIncludes bounds a configuration that includes itself.
	maxIncludes = 100
)

// A conf is what of pacman.conf(5) says what a machine shall not have.
type conf struct {
	database                string // DBPath
	ignorePkg, ignoreGroup  rules
	noExtract, noUpgrade    rules
	files                   int
	ignorePkgIn, ignoreGrIn string // the files that say so
}

// rules are patterns of which the last that matches decides; "!" turns one
// round.
type rules []rule

type rule struct {
	glob database.Glob
	not  bool
}

func (r *rules) add(words []string) {
	for _, w := range words {
		pattern, not := strings.CutPrefix(w, "!")
		*r = append(*r, rule{database.ParseGlob(pattern), not})
	}
}

func (r rules) matches(name string) bool {
	for _, rule := range slices.Backward(r) {
		if rule.glob.Match(name) {
			return !rule.not
		}
	}
	return false
}

func (m *Manager) config() (*conf, error) {
	c := &conf{database: "/var/lib/pacman"}
	if err := m.include(c, config, true); err != nil {
		return nil, fmt.Errorf("cannot read the configuration of pacman: %w", err)
	}
	if !m.layout.IsMachine() {
		c.database = "/var/lib/pacman" // as run says
	}
	return c, nil
}

// include reads one file into c. A file is in [options] where the one that
// includes it is.
func (m *Manager) include(c *conf, name string, options bool) error {
	if c.files++; c.files > maxIncludes {
		return fmt.Errorf("%q and what it includes are more than %d files", config, maxIncludes)
	}
	b, err := database.ReadFile(m.layout.Path(name), maxConf)
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		if line[0] == '[' {
			options = line == "[options]"
			continue
		}
		key, value, _ := strings.Cut(line, "=")
		words := strings.Fields(value)
		if !options || len(words) == 0 {
			continue
		}
		switch strings.TrimSpace(key) {
		case "DBPath":
			c.database = words[0]
		case "IgnorePkg":
			c.ignorePkg.add(words)
			c.ignorePkgIn = name
		case "IgnoreGroup":
			c.ignoreGroup.add(words)
			c.ignoreGrIn = name
		case "NoExtract":
			c.noExtract.add(words)
		case "NoUpgrade":
			c.noUpgrade.add(words)
		case "Include":
			// The root is no part of the pattern.
			found, err := fs.Glob(os.DirFS(m.layout.Path("/")), strings.TrimLeft(path.Clean("/"+words[0]), "/"))
			if err != nil {
				return fmt.Errorf("%q, which %q includes: %w", words[0], name, err)
			}
			for _, f := range found {
				if err := m.include(c, "/"+f, true); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// holds says which line keeps a package as it is, or "". `pacman -U` itself
// does not look at them.
func (c *conf) holds(name string, groups []string) string {
	if c.ignorePkg.matches(name) {
		return fmt.Sprintf("IgnorePkg in %q names it; take it out there to let it change", c.ignorePkgIn)
	}
	for _, g := range groups {
		if c.ignoreGroup.matches(g) {
			return fmt.Sprintf("IgnoreGroup in %q names its group %q; take it out there to let it change", c.ignoreGrIn, g)
		}
	}
	return ""
}
