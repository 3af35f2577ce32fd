package declaration

import (
	"encoding/json"
	"strconv"
)

// text is a string. Without a default it is left out when there is none.
type text[T ~string] struct {
	to   *T
	rule *rule
	def  T
}

func (t text[T]) read(a at, v any) {
	*t.to = t.def
	if s, ok := t.rule.text(a, v); ok {
		*t.to = T(s)
	}
}
func (t text[T]) unset() { *t.to = t.def }
func (t text[T]) write() any {
	if *t.to == "" {
		return nil
	}
	return *t.to
}
func (t text[T]) schema() node { return withDefault(t.rule.schema(), t.def, t.def != "") }

func withDefault(n node, def any, there bool) node {
	if there {
		n["default"] = def
	}
	return n
}

// prose is a string of which an empty one is something else than none.
type prose struct {
	to   **string
	rule *rule
}

func (p prose) read(a at, v any) {
	if s, ok := p.rule.text(a, v); ok {
		*p.to = &s
	}
}
func (p prose) unset() { *p.to = nil }
func (p prose) write() any {
	if *p.to == nil {
		return nil
	}
	return **p.to
}
func (p prose) schema() node { return p.rule.schema() }

// flag is true, or false and then left out.
type flag struct{ to *bool }

func (f flag) read(a at, v any) {
	b, ok := v.(bool)
	if !ok {
		a.fault("is not true or false")
	}
	*f.to = b
}
func (f flag) unset() { *f.to = false }
func (f flag) write() any {
	if !*f.to {
		return nil
	}
	return true
}
func (f flag) schema() node { return node{"type": "boolean", "default": false} }

// only is true, or not there: false would say nothing.
type only struct{ flag }

func (f only) read(a at, v any) {
	if f.flag.read(a, v); !*f.to {
		a.fault("can only be true")
	}
}
func (f only) schema() node { return node{"const": true} }

// choice is true, false, or not there: then it is nobody's to say.
type choice struct{ to **bool }

func (c choice) read(a at, v any) {
	b, ok := v.(bool)
	if !ok {
		a.fault("is not true or false")
	}
	*c.to = &b
}
func (c choice) unset() { *c.to = nil }
func (c choice) write() any {
	if *c.to == nil {
		return nil
	}
	return **c.to
}
func (c choice) schema() node { return node{"type": "boolean"} }

// number is a whole one. With a default of 0 that is out of its bounds it is
// left out when there is none.
type number[T int | uint64] struct {
	to          *T
	def, lo, hi T
}

func (n number[T]) read(a at, v any) {
	*n.to = n.def
	j, ok := v.(json.Number)
	if !ok {
		a.fault("is not a number")
		return
	}
	u, err := strconv.ParseUint(j.String(), 10, 63)
	if err != nil || T(u) < n.lo || T(u) > n.hi {
		s := j.String()
		if len(s) > 40 {
			s = s[:40] + "…"
		}
		a.fault("%s is not a whole number from %d to %d", s, n.lo, n.hi)
		return
	}
	*n.to = T(u)
}
func (n number[T]) unset() { *n.to = n.def }
func (n number[T]) write() any {
	if *n.to < n.lo {
		return nil
	}
	return *n.to
}
func (n number[T]) schema() node {
	return withDefault(node{"type": "integer", "minimum": n.lo, "maximum": n.hi}, n.def, n.def >= n.lo)
}
