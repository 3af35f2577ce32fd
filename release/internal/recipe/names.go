package recipe

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/opencontainers/go-digest"
)

// names are the digests that stand for what a declaration names: by member of a
// resource, by table of the recipe, by title.
type names map[string]map[string]map[string]digest.Digest

func newNames() names {
	return names{
		"source":    {"file": {}, "package": {}},
		"signature": {"package": {}},
		"image":     {"image": {}},
	}
}

// put returns the digest for the text of a member; ok is false when it is no name.
func (n names) put(member, text string) (d digest.Digest, ok bool, err error) {
	table, title, found := strings.Cut(text, ":")
	known := table == "file" || table == "package" || table == "image"
	// "image:5000/web@sha256:…" is a registry on a machine of that name.
	if !found || !known || strings.Contains(title, "@sha256:") {
		return "", false, nil
	}
	byTitle, ok := n[member][table]
	if !ok {
		return "", false, fmt.Errorf("its %s is %q: that is no place for the digest of %s", member, text, article(table))
	}
	d, ok = byTitle[title]
	if !ok {
		return "", false, fmt.Errorf("it names the %s %.128q, the recipe does not", table, title)
	}
	return d, true, nil
}

func article(table string) string {
	if table == "image" {
		return "an image"
	}
	return "a " + table
}

// fill puts digests and counter in the place of their names. A text that is not JSON
// is left as it is, for the parser to say so.
func (n names) fill(text []byte, counter uint64) ([]byte, error) {
	var out bytes.Buffer
	done := 0
	err := eachString(text, func(at []string, value string, start, end int) error {
		var instead string
		switch {
		case len(at) == 1 && at[0] == "generation" && value == "counter":
			instead = strconv.FormatUint(counter, 10)
		case len(at) == 3 && at[0] == "resources" && at[1] == inList && n[at[2]] != nil:
			d, ok, err := n.put(at[2], value)
			if err != nil {
				return err
			}
			if !ok {
				return nil
			}
			instead = strconv.Quote(d.String())
		default:
			return nil
		}
		out.Write(text[done:start])
		out.WriteString(instead)
		done = end
		return nil
	})
	if err != nil {
		return nil, err
	}
	out.Write(text[done:])
	return out.Bytes(), nil
}

// inList stands for any place in a list; no key of a declaration is spelled so.
const inList = "[]"

// maxPath is how deep a name can be: resources, a list, a member.
const maxPath = 3

// eachString calls f for each string in a JSON text that is a value and no key, down
// to maxPath: the keys and lists it is in, and where it begins and ends. It ends
// quietly at the first thing that is no JSON.
func eachString(text []byte, f func(at []string, value string, start, end int) error) error {
	d := json.NewDecoder(bytes.NewReader(text))
	// at has one element for each open object or list: the key that is next in the
	// object, "" when a key must come.
	var at []string
	for {
		before := int(d.InputOffset())
		token, err := d.Token()
		if err != nil {
			return nil
		}
		last := len(at) - 1
		switch t := token.(type) {
		case json.Delim:
			switch t {
			case '{':
				at = append(at, "")
				continue
			case '[':
				at = append(at, inList)
				continue
			}
			at = at[:last]
			last--
		case string:
			if last >= 0 && at[last] == "" {
				at[last] = keyPrefix + t
				continue
			}
			if len(at) > maxPath {
				break
			}
			start := before + bytes.IndexByte(text[before:], '"')
			if err := f(path(at), t, start, int(d.InputOffset())); err != nil {
				return err
			}
		}
		// A value has ended: in an object a key comes next.
		if last >= 0 && at[last] != inList {
			at[last] = ""
		}
	}
}

// keyPrefix tells a key from inList and from none.
const keyPrefix = "."

func path(at []string) []string {
	out := make([]string, len(at))
	for i, a := range at {
		out[i] = strings.TrimPrefix(a, keyPrefix)
	}
	return out
}
