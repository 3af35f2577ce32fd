package declaration

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Marshal writes the declaration in normal form: every default spelled out,
// names sorted, no white space. Parse of it gives the same declaration.
func (d *Declaration) Marshal() ([]byte, error) {
	m := map[string]any{}
	write(d.fields(), m)
	return encode(m)
}

// Spec is the wish a resource states, in normal form: what the thing shall be,
// without its id and its place in the order. Equal bytes mean the same wish. The
// content of a file is named by its digest, wherever it comes from: what was applied
// is known by it, and the text is in the declaration (a secret nowhere else).
func (r *Resource) Spec() json.RawMessage {
	m := r.wish()
	if f := r.File; f != nil && f.Content != nil {
		delete(m, "content")
		m["source"] = f.Digest()
	}
	b, err := encode(m)
	if err != nil {
		panic(fmt.Sprintf("internal error: a parsed resource cannot be written: %v", err))
	}
	return b
}

// FromSpec makes the resource of a Spec, with the given id.
func FromSpec(id string, spec json.RawMessage) (Resource, error) {
	v, err := decode(spec)
	if err != nil {
		return Resource{}, fmt.Errorf("cannot read a recorded resource: it %w", err)
	}
	f := &faults{}
	ms, _ := v.([]member)
	o := newObject(append(ms, member{"id", id}), "resource", f)
	o.recorded = true
	r := parseResource(o)
	if len(f.list) > 0 {
		return Resource{}, fmt.Errorf("cannot read a recorded resource: %s", f.list[0])
	}
	return r, nil
}

// wish is what the resource says of the thing, and no more.
func (r *Resource) wish() map[string]any {
	m := map[string]any{"type": r.Type}
	write(r.body().fields(), m)
	return m
}

// members is all of it.
func (r *Resource) members() map[string]any {
	m := r.wish()
	write(r.fields(), m)
	return m
}

func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
