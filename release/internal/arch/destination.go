package arch

import (
	"path"
	"regexp"
	"strings"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// The bounds of a package, written or read.
const (
	MaxFiles    = 1 << 18
	MaxUnpacked = 4 << 30 // bytes
	maxPath     = 4095    // PATH_MAX without its NUL
)

var ownerPattern = regexp.MustCompile(`^[0-9A-Za-z_][0-9A-Za-z_.-]{0,31}$`)

// forbidden are where no package of pacman's may put a file, and why.
var forbidden = map[string]string{
	"lib": "symlink", "lib64": "symlink", "bin": "symlink", "sbin": "symlink",
	"usr/lib64": "symlink", "usr/sbin": "symlink", "var/run": "symlink", "var/lock": "symlink",
	"usr/local": "administrator's", "home": "administrator's",
	"dev": "kernel's", "proc": "kernel's", "sys": "kernel's",
	"run": "boot's", "tmp": "boot's", "var/tmp": "boot's",
}

// checkDestination holds where a file of a package may go: file-hierarchy(7) as
// Arch has it. "/lib" and its like are symlinks there, and pacman refuses the
// whole transaction over one.
func checkDestination(p string) error {
	if err := checkPath(p); err != nil {
		return err
	}
	if strings.HasPrefix(p, ".") {
		return fault.Usagef("%q is a name of a package's metadata", p)
	}
	for dir := p; dir != "."; dir = path.Dir(dir) {
		if whose, bad := forbidden[dir]; bad {
			hint := "choose a place under /usr, /etc or /var"
			if whose == "symlink" {
				hint = "the folder itself is in /usr/lib, /usr/bin or /run"
			}
			return fault.Usagef("%q is in /%s, which is no package's (%s)", p, dir, whose).Hint("%s", hint)
		}
	}
	return nil
}

// checkPath refuses what is no plain relative path of one spelling.
func checkPath(p string) error {
	if p == "" || len(p) > maxPath || path.Clean("/"+p) != "/"+p || hasControl(p) {
		return fault.Refusedf("%.80q is no plain relative path", p)
	}
	for part := range strings.SplitSeq(p, "/") {
		if len(part) > 255 { // NAME_MAX
			return fault.Refusedf("%.80q has a name of more than 255 bytes", p)
		}
	}
	return nil
}

// hasControl reports a control character: lists of files are lines.
func hasControl(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f })
}
