package unit

import (
	"context"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/internal/layout"
)

// declaration.Parse refuses the host's own unit by all names that can be told
// from the document. What is here needs the machine: a text that is in the
// content store, and a name that is another one of the host's unit.

const notYours = "which is the host's own unit and no declaration's"

// Review refuses a unit that Apply would refuse for being the host's own, as far
// as the machine shows that now.
func (k *Kind) Review(r declaration.Resource) error {
	if r.Unit.Source != "" {
		if _, err := k.textOf(wish{digest: r.Unit.Source}); fault.KindOf(err) == fault.Refused && strings.HasPrefix(err.Error(), itsContent) {
			return fmt.Errorf("source: %w", err)
		}
	}
	if err := k.notHost(r.Unit.Name); err != nil {
		return fmt.Errorf("name: %w", err)
	}
	return nil
}

// itsContent begins the error of a text that is the host's own business.
const itsContent = "its content "

// notHost refuses a name that leads to the host's unit on the disk: through a
// symlink, also one of its template, or by being the same file.
func (k *Kind) notHost(name string) error {
	names := []string{name}
	if stem, instance, ok := strings.Cut(name, "@"); ok && !strings.HasPrefix(instance, ".") {
		names = append(names, stem+"@"+path.Ext(name))
	}
	for _, n := range names {
		for _, dir := range append(slices.Clone(layout.UnitDirs), "/etc/systemd/system.control", "/run/systemd/system.control") {
			if path.Base(dir) == "systemd" {
				dir += "/system"
			}
			if k.leadsToHost(path.Join(dir, n)) {
				return fault.Refusedf("%q leads to %q, %s", path.Join(dir, n), layout.HostUnit, notYours)
			}
		}
	}
	return nil
}

// maxLinks is how many symlinks one path may lead through (path_resolution(7)).
const maxLinks = 40

func (k *Kind) leadsToHost(file string) bool {
	for range maxLinks {
		fi, err := os.Lstat(k.Layout.Path(file))
		if err != nil {
			return false
		}
		if fi.Mode().IsRegular() {
			return slices.ContainsFunc(k.Layout.OwnFiles(), func(own string) bool {
				o, err := os.Stat(own)
				return err == nil && os.SameFile(fi, o)
			})
		}
		target, err := os.Readlink(k.Layout.Path(file))
		if err != nil {
			return false
		}
		if path.Base(target) == layout.HostUnit {
			return true
		}
		if !path.IsAbs(target) {
			target = path.Join(path.Dir(file), target)
		}
		file = target
	}
	return true
}

// refuse refuses what systemd, or the disk, knows as the host's own unit.
func (k *Kind) refuse(_ context.Context, name string, s status) error {
	if s.ID == layout.HostUnit || slices.Contains(s.Names, layout.HostUnit) || path.Base(s.Fragment) == layout.HostUnit {
		return fault.Refusedf("it is another name of %q, %s", layout.HostUnit, notYours)
	}
	return k.notHost(name)
}
