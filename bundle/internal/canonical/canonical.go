// Package canonical reads and writes JSON so that nobody can read the same
// bytes in two ways.
//
// Parsers disagree about a key that is there twice (most take the last), about
// the case of a key (encoding/json ignores it), about bytes that are not UTF-8,
// about a byte order mark and about what follows the document: all of it is
// refused here. Our own documents must in addition be exactly the bytes that
// Marshal writes: keys sorted, no white space, integers only.
//
// It promises nothing about the meaning of a document, and never allocates
// more than a small multiple of the bytes it is given; the caller bounds those.
package canonical

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"unicode/utf8"
)

// maxDepth bounds nesting: our deepest document has six levels.
const maxDepth = 32

// Marshal writes v with sorted keys, no white space and nothing escaped that
// JSON lets stand.
func Marshal(v any) ([]byte, error) {
	first, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	// Once through a tree: a struct is written in the order of its fields, a
	// map sorted.
	var tree any
	d := json.NewDecoder(bytes.NewReader(first))
	d.UseNumber()
	if err := d.Decode(&tree); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(tree); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

// Unmarshal reads one of our own documents into the struct v points to. The
// bytes must be what Marshal writes for v, so an unknown, doubled or
// differently spelled key is an error, as is any other order.
func Unmarshal(b []byte, v any) error {
	if err := Foreign(b, v); err != nil {
		return err
	}
	again, err := Marshal(v)
	if err != nil {
		return err
	}
	if !bytes.Equal(again, b) {
		return errors.New("the JSON is not canonical, or has keys that do not belong there")
	}
	return nil
}

// Foreign reads a document of someone else's into the struct v points to. Keys
// v does not know are passed over; white space and order are free.
func Foreign(b []byte, v any) error {
	if !utf8.Valid(b) {
		return errors.New("the JSON is not UTF-8")
	}
	if bytes.HasPrefix(b, []byte("\xef\xbb\xbf")) {
		return errors.New("the JSON begins with a byte order mark")
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err := value(d, 0, reflect.TypeOf(v)); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the JSON document")
	}
	return json.Unmarshal(b, v)
}

// value reads one value and refuses doubled keys, deep nesting, and keys that
// differ only in case from one that the type t reads.
func value(d *json.Decoder, depth int, t reflect.Type) error {
	if depth > maxDepth {
		return errors.New("the JSON is nested too deeply")
	}
	tok, err := d.Token()
	if err != nil {
		return syntax(err)
	}
	delim, ok := tok.(json.Delim)
	if !ok {
		return nil
	}
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if delim == '[' {
		var elem reflect.Type
		if t != nil && t.Kind() == reflect.Slice {
			elem = t.Elem()
		}
		for d.More() {
			if err := value(d, depth+1, elem); err != nil {
				return err
			}
		}
		_, err := d.Token()
		return syntax(err)
	}
	seen := map[string]bool{}
	for d.More() {
		tok, err := d.Token()
		if err != nil {
			return syntax(err)
		}
		key, ok := tok.(string)
		if !ok {
			return errors.New("a JSON key is no string")
		}
		if seen[key] {
			return fmt.Errorf("the JSON key %q is there twice", key)
		}
		seen[key] = true
		member, err := typeOf(t, key)
		if err != nil {
			return err
		}
		if err := value(d, depth+1, member); err != nil {
			return err
		}
	}
	_, err = d.Token()
	return syntax(err)
}

// typeOf returns the type that key is read into, nil when it is passed over.
func typeOf(t reflect.Type, key string) (reflect.Type, error) {
	if t == nil {
		return nil, nil
	}
	switch t.Kind() {
	case reflect.Map:
		return t.Elem(), nil
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			if f.Anonymous {
				if member, err := typeOf(f.Type, key); member != nil || err != nil {
					return member, err
				}
				continue
			}
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name == key {
				return f.Type, nil
			}
			if name != "" && name != "-" && strings.EqualFold(name, key) {
				return nil, fmt.Errorf("the JSON key %q must be spelled %q", key, name)
			}
		}
	}
	return nil, nil
}

func syntax(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
