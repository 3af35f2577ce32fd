package file

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/host/internal/resource"
	"github.com/nox-mesh/nox-mesh/internal/fault"
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
	before, err := parseThing(record.Before)
	if err != nil {
		return "", "", err
	}
	w := wishOf(f)
	p, err := k.open(f.Path)
	if err != nil {
		return "", "", err
	}
	defer p.close()
	if err := k.mayTouch(p, &wish{file: &declaration.File{Path: f.Path, Directory: true, Owner: "root"}}); fault.KindOf(err) == fault.Refused {
		return declaration.Released, fmt.Sprintf("it is left as it is: %v", err), nil
	} else if err != nil {
		return "", "", err
	}
	have, err := p.look(ctx)
	if err != nil {
		return "", "", err
	}
	switch {
	case have.Kind == nothing:
		k.dropEmpty(before.Parents)
		return declaration.Removed, "", nil
	case record.Adopted && (before.Kind == nothing || before.same(w.thing)):
		return declaration.Released, "it was there before the host owned it", nil
	case w.Kind == directory && have.Kind == directory:
		return k.removeDirectory(p, have, before)
	case w.Kind == directory || have.Kind != file && have.Kind != symlink:
		return declaration.Released, fmt.Sprintf("it is %s now, which the host did not make", have.Kind.article()), nil
	}
	return k.removeFile(ctx, p, have, before, w)
}

func (k *Kind) removeDirectory(p *place, have, before thing) (declaration.Outcome, string, error) {
	if before.Kind == directory {
		if err := k.setDirectory(p, have, k.back(before).attr()); err != nil {
			return "", "", err
		}
		return declaration.Released, "it was there before; it has its mode and owner of then", nil
	}
	err := p.dir.Rmdir(p.name)
	// rmdir(2) allows both numbers.
	if errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.EEXIST) {
		return declaration.Released, "it is not empty", nil
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
func (k *Kind) removeFile(ctx context.Context, p *place, have, before thing, w *wish) (declaration.Outcome, string, error) {
	note := ""
	lost := before.Kind == file && before.Digest == ""
	giveBack := (before.Kind == file || before.Kind == symlink) && !lost
	if giveBack && len(k.back(before).differences(have)) == 0 {
		return declaration.Removed, "", nil // given back before a crash
	}
	if !have.same(w.thing) {
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
	case giveBack:
		if err := k.put(ctx, p, have, k.back(before)); err != nil {
			return "", "", fmt.Errorf("what was there before cannot be given back: %w", cause(err))
		}
		return declaration.Removed, note, nil
	case lost:
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
