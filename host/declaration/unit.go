package declaration

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/internal/layout"
)

// OnChange says what a change of a unit's files does to it while it runs.
type OnChange string

// What a change does.
const (
	OnChangeNone    OnChange = "none"
	OnChangeReload  OnChange = "reload"
	OnChangeRestart OnChange = "restart"
)

// A Unit is a unit of the machine's service manager. What is nil is not the
// declaration's to say: it stays as it is.
type Unit struct {
	Name string
	// Content or Source is the unit's file, as text or as the digest of a blob
	// in the content store. With neither, the unit is one that is there.
	Content *string
	Source  digest.Digest
	// DropIns are files that change the unit, by name ("10-limits.conf").
	DropIns map[string]string
	Enabled *bool
	Active  *bool
	// Masked units cannot be started by anybody.
	Masked *bool
	// OnChange is restart when the document says nothing.
	OnChange OnChange
}

// maxUnit bounds the text of a unit, in bytes. systemd takes no longer line.
const maxUnit = 1 << 20

var (
	// unitRule is systemd.unit(5), without devices and scopes, which programs
	// make. It leaves room for what a folder beside it adds to the name.
	unitRule = &rule{
		what: "the name of a unit that can be declared (\"backup.timer\", \"web@a.service\")", like: "backup.timer", max: 240,
		pattern: regexp.MustCompile(`^[A-Za-z0-9:_.\\-]+(@[A-Za-z0-9:_.\\@-]*)?\.(automount|mount|path|service|slice|socket|swap|target|timer)$`),
	}
	dropInRule = &rule{
		what: "the name of a drop-in (\"10-limits.conf\")", like: "10-limits.conf", max: 200,
		pattern: regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.:@-]*\.conf$`),
	}
	unitTextRule = &rule{empty: true, max: maxUnit}
	onChangeRule = words(OnChangeNone, OnChangeReload, OnChangeRestart)
)

func (u *Unit) fields() []field {
	return []field{
		{"name", text[string]{&u.Name, unitRule, ""}, true, "The unit, with its type: \"backup.timer\"."},
		{"content", prose{&u.Content, unitTextRule}, false, "The text of the unit's file. Everybody on the machine can read it: a secret is for a file. Without it, the unit is one that is there."},
		{"source", text[digest.Digest]{&u.Source, digestRule, ""}, false, "The digest of the unit's file, which is in the content store, instead of content."},
		{"drop_ins", table{to: &u.DropIns, names: dropInRule, value: unitTextRule}, false, "Files that change the unit, by name: {\"10-limits.conf\": \"[Service]\\nMemoryMax=1G\\n\"}."},
		{"enabled", choice{&u.Enabled}, false, "Whether it starts at boot, or whenever its [Install] section says. Left as it is when nothing is said."},
		{"active", choice{&u.Active}, false, "Whether it runs. Left as it is when nothing is said."},
		{"masked", choice{&u.Masked}, false, "Whether nobody can start it. Left as it is when nothing is said."},
		{"on_change", text[OnChange]{&u.OnChange, onChangeRule, OnChangeRestart}, false, "What a change of its files does to it while it runs."},
	}
}

func (u *Unit) check(o *object) {
	if len(o.given("content", "source", "drop_ins", "enabled", "active", "masked")) == 0 {
		o.faults.add(o.path, "needs at least one of content, source, drop_ins, enabled, active, masked")
	}
	if o.has("content") && o.has("source") {
		o.faults.add(o.path, "needs at most one of content, source")
	}
	// A mask is a symlink in the place of the file, and nothing starts it.
	if is(u.Masked) {
		for _, name := range o.given("content", "source") {
			o.fault(name, "has no meaning for a masked unit")
		}
		if is(u.Enabled) {
			o.fault("enabled", "cannot be true of a masked unit")
		}
		if is(u.Active) {
			o.fault("active", "cannot be true of a masked unit")
		}
	}
	if is(u.Active) && u.template() {
		o.fault("active", "cannot be true of a template, only of an instance of it (%q)", strings.Replace(u.Name, "@.", "@NAME.", 1))
	}
}

// template: a unit of no instance yet (systemd.unit(5)).
func (u *Unit) template() bool { return strings.Contains(u.Name, "@.") }

func is(b *bool) bool { return b != nil && *b }

func (u *Unit) rules() node {
	no := node{"enum": []bool{false}}
	return node{
		"description": "A unit of systemd: its file, its drop-ins, whether it is enabled, active or masked.",
		"anyOf": []node{
			required("content"), required("source"), required("drop_ins"), required("enabled"), required("active"), required("masked"),
		},
		"dependentSchemas": node{"source": node{"properties": node{"content": false}}},
		"if":               node{"properties": node{"masked": node{"const": true}}, "required": []string{"masked"}},
		"then":             node{"properties": node{"content": false, "source": false, "enabled": no, "active": no}},
	}
}

func (u *Unit) name() string { return u.Name }

func unitKey(name string) string { return string(TypeUnit) + ":" + name }

// Path is where the unit's file is written; a mask is a symlink there.
func (u *Unit) Path() string { return layout.Layout{}.UnitDir() + "/" + u.Name }

// DropInPath is where a drop-in of that name is written.
func (u *Unit) DropInPath(name string) string { return u.Path() + ".d/" + name }

func (u *Unit) claims() []string {
	var out []string
	if u.Content != nil || u.Source != "" || is(u.Masked) {
		out = append(out, fileKey(u.Path()))
	}
	for _, name := range slices.Sorted(maps.Keys(u.DropIns)) {
		out = append(out, fileKey(u.DropInPath(name)))
	}
	return out
}

func (u *Unit) sources() []digest.Digest { return digests(u.Source) }

// own knows the text of the unit only when it is in the document: that of a
// Source is for the host to look at (OwnInUnit).
func (u *Unit) own(_ []layout.Own, say func(member, why string)) {
	if ownUnit(u.Name) {
		say("name", shown(u.Name)+" is the host's own unit, "+notYours)
	}
	if u.Content != nil {
		if why := OwnInUnit(*u.Content); why != "" {
			say("content", why)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(u.DropIns)) {
		if why := OwnInUnit(u.DropIns[name]); why != "" {
			say(join("drop_ins", name), why)
		}
	}
}
