package declaration

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// maxDepth bounds how deep a document may nest; ours nests four levels.
const maxDepth = 16

// member is one name of an object, in the order of the document.
type member struct {
	name  string
	value any // map: []member; array: []any; else string, json.Number, bool, nil
}

// decode reads one JSON value and nothing after it. Unlike encoding/json it
// refuses duplicate names: parsers differ in which one they take.
func decode(doc []byte) (any, error) {
	if len(doc) > MaxSize {
		return nil, fmt.Errorf("is %d bytes, more than the %d allowed", len(doc), MaxSize)
	}
	if !utf8.Valid(doc) {
		return nil, errors.New("is not UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(doc))
	d.UseNumber()
	v, err := value(d, "", 0)
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("has trailing data after the document at byte %d", d.InputOffset())
	}
	return v, nil
}

func value(d *json.Decoder, path string, depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("%s: nests deeper than %d levels", path, maxDepth)
	}
	t, err := d.Token()
	if err != nil {
		return nil, syntax(d, err)
	}
	switch t {
	case json.Delim('{'):
		var out []member
		seen := map[string]bool{}
		for d.More() {
			k, err := d.Token()
			if err != nil {
				return nil, syntax(d, err)
			}
			name := k.(string) // the decoder accepts no other key
			at := join(path, name)
			if seen[name] {
				return nil, fmt.Errorf("%s: is there twice", at)
			}
			seen[name] = true
			v, err := value(d, at, depth+1)
			if err != nil {
				return nil, err
			}
			out = append(out, member{name, v})
		}
		_, err := d.Token()
		return out, syntax(d, err)
	case json.Delim('['):
		out := []any{}
		for d.More() {
			v, err := value(d, fmt.Sprintf("%s[%d]", path, len(out)), depth+1)
			if err != nil {
				return nil, err
			}
			out = append(out, v)
		}
		_, err := d.Token()
		return out, syntax(d, err)
	}
	return t, nil
}

func syntax(d *json.Decoder, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("ends in the middle, at byte %d", d.InputOffset())
	}
	return fmt.Errorf("is not JSON at byte %d: %w", d.InputOffset(), err)
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
