package powercut

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Document is the declaration that asks for a tree.
func Document(t Tree) []byte {
	resources := []map[string]any{}
	// A directory before what is in it; symlinks are made one after the other's
	// files, as they would be by a person who sorts.
	for _, kind := range []Kind{Directory, File, Symlink} {
		for _, p := range slices.Sorted(maps.Keys(t.Things)) {
			thing := t.Things[p]
			if thing.Kind != kind {
				continue
			}
			r := map[string]any{"id": strings.ReplaceAll(p[1:], "/", "-"), "type": "file", "path": p}
			switch kind {
			case Symlink:
				r["target"] = thing.Target
			case Directory:
				r["directory"] = true
			case File:
				r["content"] = thing.Content
			}
			r["owner"], r["group"] = fmt.Sprint(thing.UID), fmt.Sprint(thing.GID)
			if kind != Symlink {
				r["mode"] = fmt.Sprintf("%04o", thing.Mode)
			}
			resources = append(resources, r)
		}
	}
	b, err := json.Marshal(map[string]any{"schema": 1, "name": "powercut", "generation": t.Generation, "resources": resources})
	if err != nil {
		panic(err) // texts and numbers
	}
	return b
}
