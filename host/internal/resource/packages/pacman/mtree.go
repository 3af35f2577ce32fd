package pacman

import (
	"strconv"
	"strings"

	"github.com/nox-mesh/nox-mesh/host/internal/resource/packages/database"
)

// parseMtree reads what bsdtar and nfpm write of mtree(5): "/set", "/unset",
// and one line for each file with its whole path. The package's own metadata
// (".PKGINFO") is left out. What it does not understand it leaves out, too.
func parseMtree(text []byte) []database.File {
	var out []database.File
	set := map[string]string{}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0][0] == '#' {
			continue
		}
		switch fields[0] {
		case "/set":
			for _, f := range fields[1:] {
				k, v, _ := strings.Cut(f, "=")
				set[k] = v
			}
			continue
		case "/unset":
			for _, k := range fields[1:] {
				delete(set, k)
			}
			continue
		}
		name, below := strings.CutPrefix(unvis(fields[0]), "./")
		if !below || name == "" || name[0] == '.' && !strings.Contains(name, "/") {
			continue
		}
		f := database.File{Path: database.Clean(name), Size: -1}
		get := func(key string) string {
			for _, w := range fields[1:] {
				if v, ok := strings.CutPrefix(w, key+"="); ok {
					return v
				}
			}
			return set[key]
		}
		switch get("type") {
		case "dir":
			f.Kind = database.Directory
		case "link":
			f.Kind, f.Target = database.Symlink, unvis(get("link"))
		case "file", "":
			f.Kind = database.Regular
			if f.Sum = strings.ToLower(get("sha256digest")); f.Sum == "" {
				f.Sum = strings.ToLower(get("md5digest"))
			}
			if n, err := strconv.ParseInt(get("size"), 10, 64); err == nil {
				f.Size = n
			}
		}
		out = append(out, f)
	}
	return out
}

// unvis undoes the octal escapes of libarchive's writer.
func unvis(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
