package file

import (
	"errors"
	"fmt"

	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/host/internal/account"
	"github.com/nox-mesh/nox-mesh/internal/durable"
)

// A wish is a thing as it shall be.
type wish struct {
	thing
	// uid and gid are durable.Keep where the owner is not ours to set.
	uid, gid int
	// noOwner and noGroup are set when there is no such account yet.
	noOwner, noGroup error
	file             *declaration.File
	// remedy is what to do when the content cannot be had.
	remedy string
}

// wish says what f asks for. An account that does not exist yet is part of the
// answer, not an error: it may be what the next resource makes.
func (k *Kind) wish(f *declaration.File) (*wish, error) {
	w := wishOf(f)
	if !k.root {
		return w, nil
	}
	w.uid, w.noOwner = account.UID(k.layout, f.Owner)
	w.gid, w.noGroup = account.GID(k.layout, f.Group)
	for _, err := range []error{w.noOwner, w.noGroup} {
		if err != nil && !errors.Is(err, account.ErrUnknown) {
			return nil, err
		}
	}
	return w, nil
}

// wishOf is wish without the accounts.
func wishOf(f *declaration.File) *wish {
	w := &wish{uid: durable.Keep, gid: durable.Keep, file: f, remedy: "send the declaration and its content again"}
	w.Mode = f.Mode
	switch {
	case f.Directory:
		w.Kind = directory
	case f.Target != "":
		w.Kind, w.Target = symlink, f.Target
	default:
		w.Kind, w.Digest = file, f.Digest()
	}
	return w
}

// back is the wish for t as it was.
func (k *Kind) back(t thing) *wish {
	w := &wish{
		thing: t, uid: durable.Keep, gid: durable.Keep, file: &declaration.File{Source: t.Digest},
		remedy: "delete the file by hand to let go of what was there before",
	}
	if k.root {
		w.uid, w.gid = int(t.UID), int(t.GID)
	}
	return w
}

func (w *wish) attr() durable.Attr { return durable.Attr{Mode: w.Mode, UID: w.uid, GID: w.gid} }

// ready returns an error while an account is missing.
func (w *wish) ready() error {
	if w.noOwner != nil {
		return w.noOwner
	}
	if w.noGroup != nil {
		return w.noGroup
	}
	return nil
}

// differences says how t is not as wished. It never shows content.
func (w *wish) differences(t thing) []string {
	if t.Kind == nothing {
		return []string{"does not exist"}
	}
	if t.Kind != w.Kind {
		return []string{fmt.Sprintf("%s, want %s", t.Kind.article(), w.Kind.article())}
	}
	var out []string
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if t.Digest != w.Digest {
		add("content")
	}
	if t.Target != w.Target {
		add("target %q, want %q", t.Target, w.Target)
	}
	if w.Kind != symlink && t.Mode != w.Mode { // a symlink has no mode
		add("mode %04o, want %04o", t.Mode, w.Mode)
	}
	switch {
	case w.noOwner != nil:
		add("owner: %v", w.noOwner)
	case w.uid != durable.Keep && uint32(w.uid) != t.UID:
		add("owner %d, want %s", t.UID, number(w.file.Owner, w.uid))
	}
	switch {
	case w.noGroup != nil:
		add("group: %v", w.noGroup)
	case w.gid != durable.Keep && uint32(w.gid) != t.GID:
		add("group %d, want %s", t.GID, number(w.file.Group, w.gid))
	}
	return out
}

// number names an account for people: "33 (www-data)".
func number(name string, id int) string {
	n := fmt.Sprint(id)
	if name == "" || name == n {
		return n
	}
	return n + " (" + name + ")"
}
