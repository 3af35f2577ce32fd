package declaration

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// maxDepth bounds how deep a document may nest; ours nests four levels.
const maxDepth = 16

// maxValues bounds how many there are: each takes more memory than a byte or two
// of a document that is made to take much.
const maxValues = 1 << 20

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
	d := decoder{Decoder: json.NewDecoder(bytes.NewReader(doc)), doc: doc}
	d.UseNumber()
	v, err := d.value(0)
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("has trailing data after the document, at %s", d.position())
	}
	if i := loneSurrogate(doc); i >= 0 {
		return nil, fmt.Errorf("has half a surrogate pair, which is no character, at %s", position(doc, i))
	}
	return v, nil
}

// loneSurrogate returns where an escape is that stands for no character, or -1.
// encoding/json takes another character for it, other parsers do not (RFC 8259,
// section 8.2). The document is known to be JSON.
func loneSurrogate(doc []byte) int {
	unit := func(i int) rune {
		if i+6 > len(doc) || doc[i] != '\\' || doc[i+1] != 'u' {
			return -1
		}
		n, err := strconv.ParseUint(string(doc[i+2:i+6]), 16, 16)
		if err != nil {
			return -1
		}
		return rune(n)
	}
	for i := 0; i < len(doc); {
		next := bytes.IndexByte(doc[i:], '\\')
		if next < 0 {
			break
		}
		i += next
		switch r := unit(i); {
		case r < 0:
			i += 2
		case !utf16.IsSurrogate(r):
			i += 6
		case utf16.DecodeRune(r, unit(i+6)) == unicode.ReplacementChar:
			return i
		default:
			i += 12
		}
	}
	return -1
}

type decoder struct {
	*json.Decoder
	doc    []byte
	values int
}

// position is where the decoder stands.
func (d *decoder) position() string { return position(d.doc, int(d.InputOffset())) }

// position is the place of a byte as editors count it: both from 1, and a column for
// each character.
func position(doc []byte, at int) string {
	before := doc[:min(at, len(doc))]
	line := before[bytes.LastIndexByte(before, '\n')+1:]
	return fmt.Sprintf("line %d, column %d", bytes.Count(before, []byte("\n"))+1, utf8.RuneCount(line)+1)
}

func (d *decoder) value(depth int) (any, error) {
	if depth > maxDepth {
		return nil, &misplaced{text: fmt.Sprintf("nests deeper than %d levels", maxDepth)}
	}
	if d.values++; d.values > maxValues {
		return nil, fmt.Errorf("holds more than %d values", maxValues)
	}
	t, err := d.Token()
	if err != nil {
		return nil, syntax(d, err)
	}
	switch t {
	case json.Delim('{'):
		return d.object(depth)
	case json.Delim('['):
		out := []any{}
		for d.More() {
			v, err := d.value(depth + 1)
			if err != nil {
				return nil, within(fmt.Sprintf("[%d]", len(out)), err)
			}
			out = append(out, v)
		}
		_, err := d.Token()
		return out, syntax(d, err)
	}
	return t, nil
}

// few is how many names are faster compared than hashed.
const few = 32

func (d *decoder) object(depth int) (any, error) {
	var out []member
	var seen map[string]bool
	for d.More() {
		k, err := d.Token()
		if err != nil {
			return nil, syntax(d, err)
		}
		name := k.(string) // the decoder accepts no other key
		twice := seen[name]
		if seen == nil {
			twice = slices.ContainsFunc(out, func(m member) bool { return m.name == name })
		}
		if twice {
			return nil, within(join("", name), &misplaced{text: "is there twice"})
		}
		v, err := d.value(depth + 1)
		if err != nil {
			return nil, within(join("", name), err)
		}
		out = append(out, member{name, v})
		if len(out) == few {
			seen = map[string]bool{}
			for _, m := range out {
				seen[m.name] = true
			}
		} else if seen != nil {
			seen[name] = true
		}
	}
	_, err := d.Token()
	return out, syntax(d, err)
}

// misplaced is what is wrong at a path, which is put together on the way out.
type misplaced struct{ path, text string }

func (m *misplaced) Error() string { return Fault{m.path, m.text}.String() }

func within(step string, err error) error {
	m, ok := err.(*misplaced)
	if !ok {
		return err
	}
	if m.path != "" && m.path[0] != '[' {
		step += "."
	}
	m.path = step + m.path
	return m
}

func syntax(d *decoder, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		if len(bytes.TrimSpace(d.doc)) == 0 {
			return errors.New("is empty")
		}
		return fmt.Errorf("ends in the middle, at %s", d.position())
	}
	return fmt.Errorf("is not JSON at %s: %w", d.position(), err)
}
