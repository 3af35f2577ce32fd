package file

import (
	"slices"
	"strings"

	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/host/internal/resource"
)

// Bequeath is asked before gone is taken away, while its heirs stay. A directory
// that the host made for gone, or that gone is, stays as long as an heir lies in it
// or is it: then it is the heir that knows it was made, and takes it along one day.
// It returns gone without those directories, and the heirs that know more now.
func (k *Kind) Bequeath(gone resource.Record, heirs []*resource.Record) (rest resource.Record, changed []resource.Record, err error) {
	before, err := parseThing(gone.Before)
	if err != nil || before.Kind != nothing {
		return gone, nil, err
	}
	made := before.Parents
	if r, err := declaration.FromSpec(gone.ID, gone.Spec); err == nil && r.File.Directory {
		made = append(slices.Clone(made), r.File.Path)
	}
	if len(made) == 0 {
		return gone, nil, nil
	}
	inherited := map[string]bool{}
	for _, h := range heirs {
		heir, took, err := inherit(*h, made)
		if err != nil {
			return gone, nil, err
		}
		for _, dir := range took {
			inherited[dir] = true
		}
		if len(took) > 0 {
			changed = append(changed, heir)
		}
	}
	before.Parents = slices.DeleteFunc(slices.Clone(before.Parents), func(dir string) bool { return inherited[dir] })
	rest = gone
	rest.Before, err = before.found()
	return rest, changed, err
}

// inherit returns the record of an heir that knows of the directories that were
// made: those it lies in, and the one it is.
func inherit(heir resource.Record, made []string) (_ resource.Record, took []string, err error) {
	at := strings.TrimPrefix(heir.Key, string(declaration.TypeFile)+":")
	is := slices.Contains(made, at)
	if !is && !slices.ContainsFunc(made, func(dir string) bool { return strings.HasPrefix(at, dir+"/") }) {
		return heir, nil, nil
	}
	before, err := parseThing(heir.Before)
	if err != nil {
		return heir, nil, err
	}
	if is {
		// What it found there was the host's own work.
		before, heir.Adopted = thing{Kind: nothing, Parents: before.Parents}, false
		took = append(took, at)
	}
	if before.Kind != nothing {
		return heir, nil, nil // something of somebody's lies in it and stays
	}
	for _, dir := range made {
		if strings.HasPrefix(at, dir+"/") {
			took = append(took, dir)
			if !slices.Contains(before.Parents, dir) {
				before.Parents = append(before.Parents, dir)
			}
		}
	}
	slices.Sort(before.Parents) // the outermost first
	heir.Before, err = before.found()
	return heir, took, err
}
