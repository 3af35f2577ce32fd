package pacman

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"path/filepath"
	"strings"

	"github.com/nox-mesh/nox-mesh/host/internal/resource/packages/database"
)

// Bounds of what is read of an entry, in bytes. The largest packages (a TeX
// distribution) have some ten thousand files.
const (
	maxDesc  = 1 << 20
	maxFiles = 64 << 20
	maxMtree = 128 << 20
)

// An entry is a folder of the local database, as it is: any of its files may be
// missing or cut.
type entry struct {
	dir           string
	name, version string
	groups        []string
	// described: desc was written to where it names the package.
	described bool
	// listed: files is there. paths are those of it, directories with their
	// "/"; backup are those of configuration.
	listed bool
	paths  []string
	backup map[string]bool
	// tree is the mtree, nil when there is none.
	tree []database.File
	// cut: the mtree could not be read to its end.
	cut bool
}

func readEntry(dir string) (*entry, error) {
	e := &entry{dir: dir, backup: map[string]bool{}}
	e.name, e.version = splitEntry(filepath.Base(dir))
	b, err := database.ReadFile(filepath.Join(dir, "desc"), maxDesc)
	if err != nil {
		return nil, err
	}
	desc := sections(b)
	e.groups = desc["GROUPS"]
	if n, v := desc["NAME"], desc["VERSION"]; len(n) == 1 && len(v) == 1 && n[0] == e.name {
		e.described, e.version = true, v[0]
	}
	b, err = database.ReadFile(filepath.Join(dir, "files"), maxFiles)
	if err != nil {
		return nil, err
	}
	e.listed = b != nil
	list := sections(b)
	e.paths = list["FILES"]
	for _, line := range list["BACKUP"] {
		name, _, _ := strings.Cut(line, "\t")
		e.backup[database.Clean(name)] = true
	}
	b, err = database.ReadFile(filepath.Join(dir, "mtree"), maxFiles)
	if err != nil || b == nil {
		return e, err
	}
	text, err := unpack(b)
	if err != nil {
		e.cut = true
	}
	e.tree = parseMtree(text)
	return e, nil
}

// unpack returns what it could.
func unpack(b []byte) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(z, maxMtree+1))
	if err == nil && len(text) > maxMtree {
		err = errors.New("it is too large")
	}
	return text, err
}

// sections reads the form of desc and files: a "%NAME%", its lines, an empty
// line.
func sections(b []byte) map[string][]string {
	out := map[string][]string{}
	section := ""
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSuffix(line, "\n")
		n := len(line)
		switch {
		case line == "":
			section = ""
		case section == "" && n > 2 && line[0] == '%' && line[n-1] == '%':
			section = line[1 : n-1]
		case section != "":
			out[section] = append(out[section], line)
		}
	}
	return out
}

// broken says what of the entry is missing. pacman writes mtree, desc and files
// in this order, so the last of them may be cut and all may be missing.
func (e *entry) broken() string {
	switch {
	case !e.described:
		return "its entry in the database is hollow"
	case !e.listed:
		return "its entry in the database has no list of files"
	case e.cut:
		return "its mtree in the database is cut"
	}
	listed := 0
	for _, p := range e.paths {
		if !strings.HasSuffix(p, "/") {
			listed++
		}
	}
	for _, f := range e.tree {
		if f.Kind != database.Directory {
			listed--
		}
	}
	if listed < 0 {
		return "its list of files in the database is cut"
	}
	return ""
}

// wanted are the files as they shall be, but for those that pacman.conf leaves
// out.
func (e *entry) wanted(c *conf) []database.File {
	tree := e.tree
	if tree == nil { // a package without one is allowed
		for _, p := range e.paths {
			f := database.File{Path: database.Clean(p), Size: -1}
			if strings.HasSuffix(p, "/") {
				f.Kind = database.Directory
			}
			tree = append(tree, f)
		}
	}
	out := make([]database.File, 0, len(tree))
	for _, f := range tree {
		relative := f.Path[1:]
		if relative == "" || c.noExtract.matches(relative) {
			continue
		}
		f.Config = e.backup[f.Path] || c.noUpgrade.matches(relative)
		out = append(out, f)
	}
	return out
}
