package unit

import (
	"errors"
	"io/fs"
	"path"
	"slices"

	"github.com/nox-mesh/nox-mesh/internal/durable"
)

// byHand are the directories where people put units and drop-ins, in the order
// in which systemd looks there (systemd.unit(5)). What lies elsewhere came with
// a package or from a generator.
var byHand = []string{"/etc/systemd/system.control", "/run/systemd/system.control", "/etc/systemd/system", "/run/systemd/system"}

// dropIns are the drop-ins for the unit of that name that lie where people put
// them.
func (k *Kind) dropIns(name string) ([]string, error) {
	var out []string
	for _, dir := range byHand {
		d, err := k.folder(path.Join(dir, name+".d", "x"), false)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		names, err := list(d)
		d.Close()
		if err != nil {
			return nil, err
		}
		for _, n := range names {
			if path.Ext(n) == ".conf" {
				out = append(out, path.Join(dir, name+".d", n))
			}
		}
	}
	slices.Sort(out)
	return out, nil
}

// maskedBy is where the unit is masked, or "". Only the first file of that name
// counts.
func (k *Kind) maskedBy(name string) (string, error) {
	for _, dir := range byHand {
		file := path.Join(dir, name)
		t, err := k.read(file)
		if err != nil {
			return "", err
		}
		if t.Kind != "" {
			if t.masks() {
				return file, nil
			}
			return "", nil
		}
	}
	return "", nil
}

// names are those in a directory; of one that is missing, none.
func (k *Kind) names(dir string) ([]string, error) {
	d, err := durable.OpenDir(k.Layout.Path(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return list(d)
}
