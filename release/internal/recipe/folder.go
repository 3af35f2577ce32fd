package recipe

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// A Folder is many files of which nobody wants to name each: their names follow
// from a version, or their number is not known.
type Folder struct {
	Title string `toml:"title"`
	Path  string `toml:"path"`
}

// A Tree is the files of a folder: by their names in it ("a/b"), where they lie.
type Tree map[string]string

// ReadTree finds the files below dir. Anything but a file or a directory is
// refused: where a symlink leads is not said here.
func ReadTree(dir string) (Tree, error) {
	out := Tree{}
	err := filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir():
			return nil
		case !e.Type().IsRegular():
			return fault.Refusedf("%q is neither a file nor a directory", name)
		}
		rel, err := filepath.Rel(dir, name)
		out[rel] = name
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("cannot read folder: %w", err)
	}
	return out, nil
}

// fillFolders makes each file of a folder a file of the recipe, called by the
// folder's title and its own name, in the order of names.
func (r *Recipe) fillFolders(given map[string]Tree) error {
	for _, f := range r.Folders {
		tree, ok := given[f.Title]
		if !ok {
			if f.Path == "" {
				return missing("path for folder", f.Title).Hint("give --folder %s=DIR", f.Title)
			}
			var err error
			if tree, err = ReadTree(r.beside(f.Path)); err != nil {
				return err
			}
		}
		delete(given, f.Title)
		if len(tree) == 0 {
			return fault.Refusedf("cannot use recipe: the folder %q has no file", f.Title)
		}
		for _, name := range slices.Sorted(maps.Keys(tree)) {
			title := f.Title + "/" + name
			if !fs.ValidPath(name) || !validTitle(title) || slices.ContainsFunc(r.Files, func(f File) bool { return f.Title == title }) {
				return fault.Refusedf("cannot use recipe: %.128q is no name for a file of folder %q", name, f.Title)
			}
			r.Files = append(r.Files, File{Title: title, Path: tree[name]})
		}
		r.trees[f.Title] = tree
	}
	return stranger("folder", given)
}

// unfold puts in the place of a resource whose source is a folder one for each of
// its files: with the file's name behind id and path, and else as it is written. A
// text that is not JSON is left as it is, for the parser to say so.
func (r *Recipe) unfold(text []byte) ([]byte, error) {
	var out bytes.Buffer
	done := 0
	err := eachResource(text, func(start, end int) error {
		raw := text[start:end]
		var of struct{ Source string }
		if json.Unmarshal(raw, &of) != nil || !strings.HasPrefix(of.Source, folderPrefix) {
			return nil
		}
		title := strings.TrimPrefix(of.Source, folderPrefix)
		tree, ok := r.trees[title]
		if !ok {
			return fmt.Errorf("it names the folder %.128q, the recipe does not", title)
		}
		out.Write(text[done:start])
		done = end
		for i, name := range slices.Sorted(maps.Keys(tree)) {
			if i > 0 {
				out.WriteString(",\n    ")
			}
			if err := one(&out, raw, title, name); err != nil {
				return err
			}
		}
		return nil
	})
	out.Write(text[done:])
	return out.Bytes(), err
}

const folderPrefix = "folder:"

// one writes the resource of one file of a folder.
func one(out *bytes.Buffer, raw []byte, title, name string) error {
	done := 0
	err := eachString(raw, func(at []string, value string, start, end int) error {
		if len(at) != 1 {
			return nil
		}
		instead := ""
		switch at[0] {
		case "id":
			instead = value + "/" + strings.Map(idLetter, name)
		case "path":
			instead = filepath.Join(value, name)
		case "source":
			instead = "file:" + title + "/" + name
		default:
			return nil
		}
		b, err := json.Marshal(instead)
		out.Write(raw[done:start])
		out.Write(b)
		done = end
		return err
	})
	out.Write(raw[done:])
	return err
}

// idLetter puts "_" in the place of what no id of a declaration has.
func idLetter(c rune) rune {
	if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("._-/", c) {
		return c
	}
	return '_'
}

// eachResource calls f with where each resource of a declaration begins and ends.
// It ends quietly at the first thing that is not as in a declaration.
func eachResource(text []byte, f func(start, end int) error) error {
	d := json.NewDecoder(bytes.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil
		}
		var value json.RawMessage
		if key != "resources" {
			if d.Decode(&value) != nil {
				return nil
			}
			continue
		}
		if t, err := d.Token(); err != nil || t != json.Delim('[') {
			return nil
		}
		for d.More() {
			if d.Decode(&value) != nil {
				return nil
			}
			end := int(d.InputOffset())
			if err := f(end-len(value), end); err != nil {
				return err
			}
		}
		return nil
	}
	return nil
}
