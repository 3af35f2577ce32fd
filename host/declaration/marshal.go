package declaration

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Marshal writes the declaration in normal form: every default spelled out,
// names sorted, no white space. Parse of it gives the same declaration.
func (d *Declaration) Marshal() ([]byte, error) {
	resources := make([]map[string]any, 0, len(d.Resources))
	for i := range d.Resources {
		r := &d.Resources[i]
		m := r.members()
		m["id"] = r.ID
		if len(r.After) > 0 {
			m["after"] = r.After
		}
		if len(r.RestartOn) > 0 {
			m["restart_on"] = r.RestartOn
		}
		if r.TakeOver {
			m["take_over"] = true
		}
		resources = append(resources, m)
	}
	return encode(map[string]any{
		"schema": d.Schema, "name": d.Name, "generation": d.Generation, "resources": resources,
	})
}

// Spec is the wish a resource states, in normal form: what the thing shall be,
// without its id and its place in the order. Equal bytes mean the same wish.
func (r *Resource) Spec() json.RawMessage {
	b, err := encode(r.members())
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
	o, ok := newObject(append(asMembers(v), member{"id", id}), "resource", f)
	if !ok {
		return Resource{}, fmt.Errorf("cannot read a recorded resource: %s", f.list[0])
	}
	r, _ := parseResource(o)
	if len(f.list) > 0 {
		return Resource{}, fmt.Errorf("cannot read a recorded resource: %s", f.list[0])
	}
	return r, nil
}

func asMembers(v any) []member {
	ms, _ := v.([]member)
	return ms
}

func (r *Resource) members() map[string]any {
	m := map[string]any{"type": r.Type}
	switch {
	case r.File != nil:
		f := r.File
		m["path"], m["owner"], m["group"] = f.Path, f.Owner, f.Group
		if f.Target == "" {
			m["mode"] = fmt.Sprintf("%04o", f.Mode)
		}
		switch {
		case f.Content != nil:
			m["content"] = *f.Content
		case f.Source != "":
			m["source"] = f.Source
		case f.Target != "":
			m["target"] = f.Target
		default:
			m["directory"] = true
		}
		if f.Secret {
			m["secret"] = true
		}
	case r.Process != nil:
		p := r.Process
		m["name"], m["command"], m["user"] = p.Name, p.Command, p.User
		m["working_directory"], m["restart"], m["run"] = p.WorkingDirectory, p.Restart, p.Run
		m["success_codes"], m["stop_signal"], m["stop_timeout"] = p.SuccessCodes, p.StopSignal, p.StopTimeout
		m["failure_limit"] = p.FailureLimit
		if len(p.Env) > 0 {
			m["env"] = p.Env
		}
	}
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
