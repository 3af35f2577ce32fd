package unit

import (
	"path"
	"slices"
	"strings"

	"github.com/nox-mesh/nox-mesh/internal/layout"
)

// An install is what the [Install] sections of a unit and its drop-ins say
// (systemd.unit(5)).
type install struct {
	lists map[string][]string
	// instance is what a template is enabled as.
	instance string
}

// folders are the settings that make links, and how the folder ends they lie in.
var folders = map[string]string{"WantedBy": ".wants", "RequiredBy": ".requires", "UpheldBy": ".upholds"}

func installOf(texts ...string) install {
	in := install{lists: map[string][]string{}}
	for _, text := range texts {
		section := ""
		for _, line := range lines(text) {
			if strings.HasPrefix(line, "[") {
				section = line
				continue
			}
			key, value, ok := strings.Cut(line, "=")
			if section != "[Install]" || !ok {
				continue
			}
			key, value = strings.TrimSpace(key), strings.TrimSpace(value)
			switch {
			case key == "DefaultInstance":
				in.instance = value
			case value == "":
				delete(in.lists, key)
			default:
				for _, word := range strings.Fields(value) {
					in.lists[key] = append(in.lists[key], strings.Trim(word, `"'`))
				}
			}
		}
	}
	return in
}

// lines are those of a unit's text that say something, put together where a
// backslash continues them (systemd.syntax(7)).
func lines(text string) []string {
	var out []string
	going := false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" && !going || strings.HasPrefix(line, "#") || strings.HasPrefix(line, ";") {
			continue
		}
		rest, more := strings.CutSuffix(line, `\`)
		if going {
			out[len(out)-1] += " " + rest
		} else {
			out = append(out, rest)
		}
		going = more
	}
	return out
}

// links are what enabling the unit of that name makes, as paths below systemd's
// directory. exact is false when that cannot be told: then there may be more.
func (in install) links(name string) (must, may []string, exact bool) {
	exact = true
	linked := name
	stem, instance, is := strings.Cut(strings.TrimSuffix(name, path.Ext(name)), "@")
	if is && instance == "" {
		if in.instance == "" {
			return nil, nil, false
		}
		linked = stem + "@" + in.instance + path.Ext(name)
		exact = false // other instances of it may be enabled
	}
	for key, end := range folders {
		for _, word := range in.lists[key] {
			target, ok := specifiers(word, linked)
			switch {
			case !ok || strings.Contains(target, "@."):
				exact = false
			case key == "UpheldBy": // not of all versions
				may = append(may, target+end+"/"+linked)
			default:
				must = append(must, target+end+"/"+linked)
			}
		}
	}
	for _, word := range in.lists["Alias"] {
		alias, ok := specifiers(word, linked)
		switch {
		case !ok || is:
			exact = false
		case alias != name:
			must = append(must, alias)
		}
	}
	slices.Sort(must)
	return slices.Compact(must), may, exact
}

// specifiers puts in what the name of the unit gives (systemd.unit(5)); ok is
// false when there are others.
func specifiers(word, name string) (string, bool) {
	stem := strings.TrimSuffix(name, path.Ext(name))
	prefix, instance, _ := strings.Cut(stem, "@")
	var b strings.Builder
	for i := 0; i < len(word); i++ {
		if word[i] != '%' || i+1 == len(word) {
			b.WriteByte(word[i])
			continue
		}
		i++
		switch word[i] {
		case 'n':
			b.WriteString(name)
		case 'N':
			b.WriteString(stem)
		case 'p':
			b.WriteString(prefix)
		case 'i':
			b.WriteString(instance)
		case '%':
			b.WriteByte('%')
		default:
			return "", false
		}
	}
	return b.String(), true
}

// links are the links to the unit of that name in systemd's directory, as paths
// below it: in folders like multi-user.target.wants, and its other names.
func (k *Kind) links(name string) ([]string, error) {
	dir := layout.Layout{}.UnitDir()
	top, err := k.names(dir)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, n := range top {
		switch ext := path.Ext(n); {
		case ext == ".wants" || ext == ".requires" || ext == ".upholds":
			t, err := k.read(path.Join(dir, n, name))
			if err != nil {
				return nil, err
			}
			if t.Kind == "symlink" && !t.masks() {
				out = append(out, n+"/"+name)
			}
		case ext == path.Ext(name) && n != name:
			t, err := k.read(path.Join(dir, n))
			if err != nil {
				return nil, err
			}
			if t.Kind == "symlink" && path.Base(t.Target) == name {
				out = append(out, n)
			}
		}
	}
	slices.Sort(out)
	return out, nil
}
