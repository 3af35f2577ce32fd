package declaration

import (
	"fmt"
	"path"
	"strconv"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/internal/layout"
)

// A File is a regular file, a symlink or a directory. Exactly one of Content,
// Source, Target and Directory is given.
type File struct {
	// Path is absolute and clean.
	Path string
	// Content is the text of the file; nil when another member says what it is.
	Content *string
	// Source is the digest of the content in the content store.
	Source digest.Digest
	// Target makes it a symlink.
	Target string
	// Directory makes it a directory.
	Directory bool
	// Mode is the permission bits with setuid, setgid and sticky; 0644 for a
	// file, 0600 for a secret one and 0755 for a directory when the document
	// says nothing.
	Mode uint32
	// Owner and Group are a name, or a number that needs no account; root when
	// the document says nothing.
	Owner, Group string
	// Secret content is never printed, logged or reported.
	Secret bool

	// digest is that of Content.
	digest digest.Digest
}

func (f *File) fields() []field {
	return []field{
		{"path", text[string]{&f.Path, pathRule, ""}, true, "Where it is: absolute, with no part \".\" or \"..\"."},
		{"content", prose{&f.Content, contentRule}, false, "The text of the file."},
		{"source", text[digest.Digest]{&f.Source, digestRule, ""}, false, "The digest of the content, which is in the content store."},
		{"target", text[string]{&f.Target, targetRule, ""}, false, "Makes it a symlink that leads there."},
		{"directory", only{flag{&f.Directory}}, false, "Makes it a directory."},
		{"mode", mode{&f.Mode, f.Target != ""}, false, "The permission bits, as octal digits in quotes. 0644 when nothing is said, 0600 for a secret, 0755 for a directory."},
		{"owner", text[string]{&f.Owner, accountRule, "root"}, false, "A user's name, or a number that needs no account."},
		{"group", text[string]{&f.Group, accountRule, "root"}, false, "A group's name, or a number that needs no account."},
		{"secret", flag{&f.Secret}, false, "The content is never printed, logged or sent in a report. No bundle may hold it."},
	}
}

func (f *File) check(o *object) {
	if len(o.given("content", "source", "target", "directory")) != 1 {
		o.faults.add(o.path, "needs exactly one of content, source, target, directory")
	}
	if o.has("target") && o.has("mode") {
		o.fault("mode", "has no meaning for a symlink")
	}
	if f.Content != nil {
		f.digest = digestOf(*f.Content)
	}
	if f.Secret && !o.has("content") && !(o.recorded && o.has("source")) {
		o.fault("secret", "is for content only")
	}
	switch {
	case o.has("target"):
		f.Mode = 0o777
	case o.has("mode"):
	case f.Directory:
		f.Mode = 0o755
	case f.Secret:
		f.Mode = 0o600
	default:
		f.Mode = 0o644
	}
}

// Digest is that of the content, wherever it comes from; "" for what has none.
func (f *File) Digest() digest.Digest {
	switch {
	case f.Content == nil:
		return f.Source
	case f.digest == "": // it was not parsed
		return digestOf(*f.Content)
	}
	return f.digest
}

// digestOf is digest.FromString without a copy of the text, of which there may be
// thousands.
func digestOf(text string) digest.Digest {
	d := digest.SHA256.Digester()
	var part [512]byte
	for len(text) > 0 {
		n := copy(part[:], text)
		_, _ = d.Hash().Write(part[:n]) // never fails (hash.Hash)
		text = text[n:]
	}
	return d.Digest()
}

func (f *File) rules() node {
	return node{
		"description": "A regular file (content or source), a symlink (target) or a directory.",
		"oneOf":       []node{required("content"), required("source"), required("target"), required("directory")},
		"dependentSchemas": node{
			"target": node{"properties": node{"mode": false}},
		},
		"if":   node{"properties": node{"secret": node{"const": true}}, "required": []string{"secret"}},
		"then": required("content"),
	}
}

func (f *File) name() string     { return f.Path }
func (f *File) claims() []string { return nil }

func (f *File) sources() []digest.Digest { return digests(f.Source) }

// Leads is the path a symlink's target is, with no other symlink looked at.
func (f *File) Leads() string {
	if path.IsAbs(f.Target) {
		return path.Clean(f.Target)
	}
	return path.Join(path.Dir(f.Path), f.Target)
}

// InUnitDir reports whether the file lies where systemd reads units from, so
// that its content, wherever it comes from, is for OwnInUnit to look at.
func (f *File) InUnitDir() bool { return inUnitDir(f.Path) }

// Own says how the file touches what is the host's own by the list, and the
// member of the document that does; why is "" when none does. Nothing is
// looked up: a host that knows where the path really leads asks again, of a
// copy with that path.
func (f *File) Own(own []layout.Own) (member, why string) {
	if what := ownPath(f.Path, own); what != "" {
		return "path", fmt.Sprintf("%q is %s, %s", f.Path, what, notYours)
	}
	if what := parentOf(f.Path, own); what != "" {
		switch {
		case !f.Directory:
			return "path", fmt.Sprintf("%q leads to %s and can only be a directory", f.Path, what)
		case f.Mode&0o022 != 0:
			return "mode", fmt.Sprintf("%q leads to %s: no one but its owner may write there (%04o)", f.Path, what, f.Mode)
		case f.Owner != "root" && f.Owner != "0":
			return "owner", fmt.Sprintf("%q leads to %s and can only be root's", f.Path, what)
		}
	}
	if f.Target != "" {
		to := f.Leads()
		if what := ownPath(to, own); what != "" {
			return "target", fmt.Sprintf("%q is %s, %s", to, what, notYours)
		}
		// What lies elsewhere, or is not called so, is not looked at as a unit
		// when it is written. systemd reads more directories than have a name
		// that says so (system.control, generator.late), so the name of the
		// symlink does not count.
		if f.InUnitDir() && to != "/dev/null" {
			switch {
			case !inUnitDir(to):
				return "target", fmt.Sprintf("%q is no place of units: a symlink in systemd's directories can only lead into one of them or to /dev/null", to)
			case UnitText(path.Base(f.Path)) && !UnitText(path.Base(to)):
				return "target", fmt.Sprintf("%q is not the name of a unit: what systemd reads as one can only be a symlink to another or to /dev/null", to)
			}
		}
	}
	if f.Content != nil && f.InUnitDir() {
		if why := OwnInUnit(*f.Content); why != "" {
			return "content", why
		}
	}
	return "", ""
}

func (f *File) own(own []layout.Own, say func(member, why string)) {
	if f.Path == "" {
		return
	}
	if member, why := f.Own(own); why != "" {
		say(member, why)
	}
}

func fileKey(p string) string { return string(TypeFile) + ":" + p }

// digests are those that are there.
func digests(list ...digest.Digest) []digest.Digest {
	var out []digest.Digest
	for _, d := range list {
		if d != "" {
			out = append(out, d)
		}
	}
	return out
}

// mode is the permission bits of a file, in octal. What stands for none, and
// whether it is written, is the file's to say.
type mode struct {
	to   *uint32
	none bool
}

func (m mode) read(a at, v any) {
	if s, ok := modeRule.text(a, v); ok {
		n, _ := strconv.ParseUint(s, 8, 16)
		*m.to = uint32(n)
	}
}
func (m mode) unset() {}
func (m mode) write() any {
	if m.none {
		return nil
	}
	return fmt.Sprintf("%04o", *m.to)
}
func (m mode) schema() node { return modeRule.schema() }
