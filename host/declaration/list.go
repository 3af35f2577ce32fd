package declaration

import "maps"

// texts is a list of strings, left out when it is empty.
type texts struct {
	to    *[]string
	rule  *rule
	first *rule // of the first element, if it is another one
	least int
}

func (t texts) read(a at, v any) {
	list, ok := v.([]any)
	if !ok {
		a.fault("is not a list")
		return
	}
	if len(list) < t.least {
		a.fault("is empty")
	}
	*t.to = nil
	for i, e := range list {
		if a.faults.full() {
			break
		}
		r := t.rule
		if i == 0 && t.first != nil {
			r = t.first
		}
		s, ok := e.(string)
		if !ok || r.fault(s) != "" {
			r.text(a.element(i), e)
		}
		*t.to = append(*t.to, s)
	}
}
func (t texts) unset() { *t.to = nil }
func (t texts) write() any {
	if len(*t.to) == 0 {
		return nil
	}
	return *t.to
}
func (t texts) schema() node {
	n := node{"type": "array", "items": t.rule.schema()}
	if t.first != nil {
		n["prefixItems"] = []node{t.first.schema()}
	}
	if t.least > 0 {
		n["minItems"] = t.least
	}
	return n
}

// table is strings by their names, left out when it is empty.
type table struct {
	to           *map[string]string
	names, value *rule
	// reserved says why a name is somebody else's, or "".
	reserved func(name string) string
	// more is what the JSON Schema says of that.
	more node
}

func (t table) read(a at, v any) {
	members, ok := v.([]member)
	if !ok {
		a.fault("is not an object")
		return
	}
	*t.to = nil
	for _, m := range members {
		if a.faults.full() {
			break
		}
		if m.name == "" {
			a.fault("holds an empty name")
		} else if why := t.names.fault(m.name); why != "" {
			a.key(m.name).fault("%s", why)
		} else if t.reserved != nil && t.reserved(m.name) != "" {
			a.key(m.name).fault("%s", t.reserved(m.name))
		}
		if s, ok := t.value.text(a.key(m.name), m.value); ok {
			if *t.to == nil {
				*t.to = map[string]string{}
			}
			(*t.to)[m.name] = s
		}
	}
}
func (t table) unset() { *t.to = nil }
func (t table) write() any {
	if len(*t.to) == 0 {
		return nil
	}
	return *t.to
}
func (t table) schema() node {
	n := node{"type": "object", "propertyNames": t.names.schema(), "additionalProperties": t.value.schema()}
	maps.Copy(n, t.more)
	return n
}

// objects is a list of objects, left out when it is empty.
type objects[T any] struct {
	to     *[]T
	fields func(*T) []field
	check  func(*T, *object)
	most   int
	more   node
}

func (l objects[T]) read(a at, v any) {
	list, ok := v.([]any)
	if !ok {
		a.fault("is not a list")
		return
	}
	if len(list) > l.most {
		a.fault("are %d, more than the %d allowed", len(list), l.most)
		return
	}
	*l.to = nil
	for i, e := range list {
		var t T
		if o := a.element(i).object(e); o != nil {
			o.read(l.fields(&t))
			o.end()
			l.check(&t, o)
		}
		*l.to = append(*l.to, t)
	}
}
func (l objects[T]) unset() { *l.to = nil }
func (l objects[T]) write() any {
	if len(*l.to) == 0 {
		return nil
	}
	var out []map[string]any
	for i := range *l.to {
		m := map[string]any{}
		write(l.fields(&(*l.to)[i]), m)
		out = append(out, m)
	}
	return out
}
func (l objects[T]) schema() node {
	items := shape(l.fields(new(T)))
	maps.Copy(items, l.more)
	return node{"type": "array", "items": items, "maxItems": l.most}
}

// group is one object, left out when nothing is in it.
type group struct{ fields []field }

func (g group) read(a at, v any) {
	if o := a.object(v); o != nil {
		o.read(g.fields)
		o.end()
	}
}
func (g group) unset() {
	for _, f := range g.fields {
		f.value.unset()
	}
}
func (g group) write() any {
	m := map[string]any{}
	if write(g.fields, m); len(m) == 0 {
		return nil
	}
	return m
}
func (g group) schema() node { return shape(g.fields) }
