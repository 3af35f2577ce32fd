package file

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/host/internal/resource"
)

// Remove implements resource.Kind.
func (k *Kind) Remove(ctx context.Context, record resource.Record) (declaration.Outcome, string, error) {
	defer k.leave()
	r, err := declaration.FromSpec("recorded", record.Spec)
	if err != nil {
		return "", "", err
	}
	outcome, note, err := k.remove(ctx, r.File, record)
	if err != nil {
		return "", "", cannot("remove", r.File.Path, err)
	}
	return outcome, note, nil
}

func (k *Kind) remove(ctx context.Context, f *declaration.File, record resource.Record) (declaration.Outcome, string, error) {
	l, err := k.leaving(ctx, f, record)
	if err != nil {
		return "", "", err
	}
	defer l.close()
	switch {
	case l.back && l.have.Kind == directory:
		err = k.setDirectory(l.place, l.have, k.back(l.before).attr())
	case l.why != "":
	case l.have.Kind == nothing:
		k.dropEmpty(l.before.Parents)
	case l.have.Kind == directory:
		return k.removeDirectory(l.place, l.before)
	default:
		return k.removeFile(ctx, l)
	}
	if err != nil {
		return "", "", err
	}
	if l.why != "" {
		return declaration.Released, l.why, nil
	}
	return declaration.Removed, "", nil
}

func (k *Kind) removeDirectory(p *place, before thing) (declaration.Outcome, string, error) {
	err := p.dir.Rmdir(p.name)
	// rmdir(2) allows both numbers.
	if errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.EEXIST) {
		return declaration.Released, notEmpty, nil
	}
	if err != nil {
		return "", "", err
	}
	k.dropEmpty(before.Parents)
	return declaration.Removed, "", nil
}

// removeFile takes away the file or symlink have, and gives back what was
// before. What somebody made of it is put beside first, under a second name, so
// that a crash in between leaves both.
func (k *Kind) removeFile(ctx context.Context, l *leaving) (declaration.Outcome, string, error) {
	p, have, before := l.place, l.have, l.before
	note := ""
	if l.back && len(k.back(before).differences(have)) == 0 {
		return declaration.Removed, "", nil // given back before a crash
	}
	if l.changed {
		saved, err := p.putBeside(have)
		if err != nil {
			return "", "", err
		}
		note = fmt.Sprintf("somebody changed it: what it was is in %q", saved)
		if have, err = p.look(ctx); err != nil { // a second name changes the ctime
			return "", "", err
		}
	}
	switch {
	case l.back:
		if err := k.put(ctx, p, have, k.back(before)); err != nil {
			return "", "", fmt.Errorf("what was there before cannot be given back: %w", cause(err))
		}
		return declaration.Removed, note, nil
	case l.lost():
		if note != "" {
			note += "; "
		}
		note += "what was there before was too large to be kept"
	}
	if have.Kind != nothing {
		if err := p.unchanged(have); err != nil {
			return "", "", err
		}
		if err := p.dir.Remove(p.name); err != nil {
			return "", "", err
		}
	}
	k.dropEmpty(before.Parents)
	return declaration.Removed, note, nil
}

// maxSaved bounds the search for a free name.
const maxSaved = 100

// putBeside gives the file a second name beside it, NAME.nox-saved or the next
// that is free, and returns it. Where the file system has no second names
// (link(2): EPERM, EOPNOTSUPP), the file is renamed.
func (p *place) putBeside(have thing) (string, error) {
	for i := range maxSaved {
		end := ".nox-saved"
		if i > 0 {
			end = fmt.Sprintf("%s.%d", end, i)
		}
		name := p.name[:min(len(p.name), unix.NAME_MAX-len(end))] + end
		err := unix.Linkat(p.dir.FD(), p.name, p.dir.FD(), name, 0)
		switch {
		case err == nil:
			return name, p.dir.Sync()
		case errors.Is(err, unix.EEXIST):
			var st unix.Stat_t
			if err := unix.Fstatat(p.dir.FD(), name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
				return "", err
			}
			if st.Dev == have.stat.Dev && st.Ino == have.stat.Ino {
				return name, nil // saved before a crash
			}
		case errors.Is(err, unix.EPERM), errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.EMLINK):
			err := unix.Renameat2(p.dir.FD(), p.name, p.dir.FD(), name, unix.RENAME_NOREPLACE)
			if errors.Is(err, unix.EEXIST) {
				continue
			}
			if err != nil {
				return "", err
			}
			return name, p.dir.Sync()
		default:
			return "", err
		}
	}
	return "", fmt.Errorf("what somebody made of it cannot be saved: %d files are saved beside it already", maxSaved)
}
