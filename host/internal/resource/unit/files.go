package unit

import (
	"fmt"
	"os"
	"path"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/host/declaration"
)

// Files are named by their paths on the machine. One lies in a directory of
// systemd's, or in a folder NAME.d in it, which is never a symlink.

const (
	// maxText bounds the text of a unit or a drop-in, in bytes. systemd takes no
	// longer line.
	maxText  = 1 << 20
	fileMode = 0o644
	null     = "/dev/null"
)

// A thing is what is at a path.
type thing struct {
	// Kind is "" for nothing, "file", "symlink" or "other".
	Kind   string `json:"kind"`
	Text   []byte `json:"text,omitempty"`
	Target string `json:"target,omitempty"`
	Mode   uint32 `json:"mode,omitempty"`
	owner  uint32
}

// masks: systemd takes a symlink to /dev/null for a unit that is not to be.
func (t thing) masks() bool { return t.Kind == "symlink" && path.Clean(t.Target) == null }

func (t thing) same(o thing) bool {
	return t.Kind == o.Kind && string(t.Text) == string(o.Text) && t.Target == o.Target && t.Mode == o.Mode
}

// A wish is what shall be at a path.
type wish struct {
	// mask is a symlink to /dev/null; else it is a file of that digest, whose
	// text is here unless it is in the content store.
	mask   bool
	digest digest.Digest
	text   *string
}

func textWish(text string) wish { return wish{digest: digest.FromString(text), text: &text} }

// wishes are the files of a unit, by path.
func wishes(u *declaration.Unit) map[string]wish {
	out := map[string]wish{}
	switch {
	case u.Content != nil:
		out[u.Path()] = textWish(*u.Content)
	case u.Source != "":
		out[u.Path()] = wish{digest: u.Source}
	case is(u.Masked):
		out[u.Path()] = wish{mask: true}
	}
	for name, text := range u.DropIns {
		out[u.DropInPath(name)] = textWish(text)
	}
	return out
}

func is(b *bool) bool { return b != nil && *b }

// isnt: the declaration says no, which is more than to say nothing.
func isnt(b *bool) bool { return b != nil && !*b }

// difference says how the thing differs from the wish, or "".
func (w wish) difference(t thing) string {
	switch {
	case t.Kind == "":
		return "missing"
	case w.mask && t.masks():
		return ""
	case w.mask:
		return "not masked"
	case t.Kind == "symlink":
		return "a symlink to " + t.Target
	case t.Kind != "file":
		return "no regular file"
	case digest.FromBytes(t.Text) != w.digest:
		return "content"
	case t.Mode != fileMode:
		return fmt.Sprintf("mode %04o, want %04o", t.Mode, fileMode)
	case os.Geteuid() == 0 && t.owner != 0:
		return fmt.Sprintf("owner %d, want root", t.owner)
	}
	return ""
}
