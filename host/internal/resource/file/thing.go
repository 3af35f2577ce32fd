package file

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/opencontainers/go-digest"
	"golang.org/x/sys/unix"
)

// A kind is what sort of thing a name is.
type kind string

const (
	nothing   kind = "nothing"
	file      kind = "file"
	symlink   kind = "symlink"
	directory kind = "directory"
)

func kindOf(mode uint32) kind {
	switch mode & unix.S_IFMT {
	case unix.S_IFREG:
		return file
	case unix.S_IFLNK:
		return symlink
	case unix.S_IFDIR:
		return directory
	case unix.S_IFIFO:
		return "fifo"
	case unix.S_IFSOCK:
		return "socket"
	case unix.S_IFBLK:
		return "block device"
	case unix.S_IFCHR:
		return "character device"
	}
	return "thing of unknown type"
}

func (k kind) article() string { return "a " + string(k) }

// A thing is what is at a name. Its JSON is State.Found and Record.Before.
type thing struct {
	Kind kind `json:"kind"`
	// Mode is the permission bits with setuid, setgid and sticky.
	Mode uint32 `json:"mode,omitempty"`
	UID  uint32 `json:"uid"`
	GID  uint32 `json:"gid"`
	// Size is a file's, in bytes.
	Size int64 `json:"size,omitempty"`
	// Digest is that of a file's content; empty in State.Found when the file is
	// too large to be kept.
	Digest digest.Digest `json:"digest,omitempty"`
	// Target is a symlink's.
	Target string `json:"target,omitempty"`
	// Parents are the directories that were missing, the outermost first; for
	// nothing only.
	Parents []string `json:"parents,omitempty"`

	stat unix.Stat_t
}

// errMoved says that the name is another thing than a moment ago. The next pass
// looks again.
var errMoved = errors.New("it changed while the host was at work on it")

// look says what is at the place. It opens nothing but a regular file: opening
// a fifo or a device has effects.
func (p *place) look(ctx context.Context) (thing, error) {
	if len(p.missing) > 0 {
		return thing{Kind: nothing, Parents: p.parents()}, nil
	}
	var t thing
	if err := unix.Fstatat(p.dir.FD(), p.name, &t.stat, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		if errors.Is(err, unix.ENOENT) {
			return thing{Kind: nothing}, nil
		}
		return t, err
	}
	t.Kind, t.Mode = kindOf(t.stat.Mode), t.stat.Mode&0o7777
	t.UID, t.GID = t.stat.Uid, t.stat.Gid
	var err error
	switch t.Kind {
	case symlink:
		t.Target, err = readlink(p.dir.FD(), p.name)
	case file:
		t.Size = t.stat.Size
		t.Digest, err = p.hash(ctx, t)
	}
	return t, err
}

// openFile opens the regular file that t is.
func (p *place) openFile(t thing) (descriptor, error) {
	fd, err := unix.Openat(p.dir.FD(), p.name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Dev != t.stat.Dev || st.Ino != t.stat.Ino {
		_ = unix.Close(fd)
		return -1, errMoved
	}
	return descriptor(fd), nil
}

func (p *place) hash(ctx context.Context, t thing) (digest.Digest, error) {
	f, err := p.openFile(t)
	if err != nil {
		return "", err
	}
	defer f.Close()
	// One byte more than there was: a file that grows for ever ends here, and
	// is not what anybody wanted.
	return copyHashed(ctx, nil, f, t.Size+1)
}

// unchanged returns errMoved unless t is still what is at the place, untouched.
func (p *place) unchanged(t thing) error {
	var st unix.Stat_t
	err := unix.Fstatat(p.dir.FD(), p.name, &st, unix.AT_SYMLINK_NOFOLLOW)
	switch {
	case errors.Is(err, unix.ENOENT):
		if t.Kind == nothing {
			return nil
		}
		return errMoved
	case err != nil:
		return err
	case t.Kind == nothing, st.Dev != t.stat.Dev, st.Ino != t.stat.Ino, st.Ctim != t.stat.Ctim:
		return errMoved
	}
	return nil
}

// same reports whether two things are of one kind and content.
func (t thing) same(o thing) bool {
	return t.Kind == o.Kind && t.Digest == o.Digest && t.Target == o.Target
}

// found is the JSON of State.Found; nil when there is nothing to give back or
// take away again.
func (t thing) found() (json.RawMessage, error) {
	if t.Kind == nothing && len(t.Parents) == 0 {
		return nil, nil
	}
	return json.Marshal(t)
}

func parseThing(b json.RawMessage) (thing, error) {
	if len(b) == 0 || string(b) == "null" {
		return thing{Kind: nothing}, nil
	}
	var t thing
	if err := json.Unmarshal(b, &t); err != nil {
		return t, fmt.Errorf("what was there before cannot be read: %w", err)
	}
	return t, nil
}

// References returns the content that a State.Found or Record.Before needs for
// the file to be given back.
func References(before json.RawMessage) ([]digest.Digest, error) {
	t, err := parseThing(before)
	if err != nil || t.Digest == "" {
		return nil, err
	}
	return []digest.Digest{t.Digest}, nil
}

func readlink(dir int, name string) (string, error) {
	b := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(dir, name, b)
	if err != nil {
		return "", err
	}
	return string(b[:n]), nil
}
