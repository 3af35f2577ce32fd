package bundle

import (
	"bytes"
	"context"
	"crypto"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/opencontainers/go-digest"
	"golang.org/x/sys/unix"

	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// Resigning says who signs a bundle that is there already.
type Resigning struct {
	// Policy is what the bundle must verify under as it is; it is required: who
	// signs what does not verify vouches for a stranger's work.
	Policy *trust.Policy
	// Signers sign it, one signature each.
	Signers []crypto.Signer
	// Add keeps the signatures of other keys that still may sign, as long as a
	// rotation needs both the old and the new. A signature that counts no more,
	// by a revoked key for one, is never kept.
	Add bool
	// Roots is the chain of release roots that the bundle shall carry, oldest
	// first; nil leaves it as it is. It holds each root the bundle carries.
	Roots [][]byte
	// Progress, if set, is told as the bundle is "reading", "writing" and "reading
	// back".
	Progress Told
}

// A Resigned says what Resign changed.
type Resigned struct {
	// Info is of the bundle as it is now.
	*Info
	// Dropped are the signatures that were there and are not any more.
	Dropped int `json:"dropped"`
}

// Resign writes the bundle at in to out, which may be the same file, with other
// signatures: only index.json, the signatures and the release roots change, D and
// all that follows the head are the same bytes. As with Build the file is at out
// only after it was read back whole, what was there before is there until then,
// and equal inputs give equal bytes.
func Resign(ctx context.Context, in, out string, r Resigning) (*Resigned, error) {
	info, err := resign(ctx, in, out, r)
	if err != nil {
		return nil, fmt.Errorf("cannot sign bundle %q again: %w", in, err)
	}
	return info, nil
}

func resign(ctx context.Context, in, out string, r Resigning) (*Resigned, error) {
	f, err := os.OpenFile(in, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if fi, err := f.Stat(); err != nil || !fi.Mode().IsRegular() {
		return nil, fault.Refusedf("%q is not a regular file", in).Hint("save the bundle to a file first")
	}
	file, err := openDestination(out)
	if err != nil {
		return nil, err
	}
	defer file.close()
	d := &reading{opts: Options{Policy: r.Policy, Progress: r.Progress.of("reading")}, tar: newTarReader(ctx, f), received: map[digest.Digest]int64{}}
	if err := d.walk(ctx, stateLayout, stateAdmit); err != nil {
		return nil, err
	}
	rest, err := f.Seek(0, io.SeekCurrent)
	if err != nil {
		return nil, err
	}
	if err := d.walk(ctx, stateAdmit, stateDone); err != nil {
		return nil, err
	}
	seal, policy, err := d.sealed(r)
	if err != nil {
		return nil, err
	}
	dropped := 0
	for _, old := range d.signatures {
		if !slices.ContainsFunc(seal.signatures, func(s signature) bool { return bytes.Equal(s.bundle, old.bundle) }) {
			dropped++
		}
	}
	if _, err := f.Seek(rest, io.SeekStart); err != nil {
		return nil, err
	}
	info, err := seal.write(ctx, f, file, policy, r.Progress)
	if err != nil {
		return nil, err
	}
	return &Resigned{Info: info, Dropped: dropped}, nil
}

// sealed is the seal the bundle that was read shall have, and what it must verify
// under then.
func (d *reading) sealed(r Resigning) (*seal, *trust.Policy, error) {
	s := &seal{bundle: d.pointers.bundle, index: d.index, roots: d.roots, others: d.pointers.others}
	if r.Roots != nil {
		s.roots = r.Roots
	}
	for _, old := range d.roots {
		if !slices.ContainsFunc(s.roots, func(b []byte) bool { return bytes.Equal(b, old) }) {
			return nil, nil, fault.Refusedf("it carries a release root that is not in the chain given").
				Hint("give the keys of the publisher who made it, with all of their roots")
		}
	}
	own, err := publisher(Spec{Roots: s.roots, Signers: r.Signers})
	if err != nil {
		return nil, nil, err
	}
	mine := map[string]bool{}
	for _, k := range r.Signers {
		id, err := trust.KeyID(k.Public())
		if err != nil {
			return nil, nil, err
		}
		mine[id] = true
	}
	// Without roots in the file, what counts is what the caller trusts.
	judge := own
	if len(s.roots) == 0 {
		if judge, err = trust.Merge(r.Policy, own); err != nil {
			return nil, nil, err
		}
	}
	for _, old := range d.signatures {
		by, err := judge.Verify(d.info.Digest, [][]byte{old.bundle}, trust.ScopeRelease)
		if err == nil && r.Add && !mine[by[0].Key] {
			s.signatures = append(s.signatures, old)
		}
	}
	fresh, err := sign(d.pointers.subject(), r.Signers)
	if err != nil {
		return nil, nil, err
	}
	s.signatures = append(s.signatures, fresh...)
	if n := len(s.signatures); n > maxSignatures {
		return nil, nil, fault.Refusedf("it would have %d signatures, at most %d are read", n, maxSignatures).
			Hint("let the new one take the place of the others")
	}
	return s, judge, nil
}

// write writes the head to file, and after it all that is left of rest.
func (s *seal) write(ctx context.Context, rest *os.File, file *destination, policy *trust.Policy, told Told) (*Info, error) {
	members, err := s.members()
	if err != nil {
		return nil, err
	}
	var head bytes.Buffer
	for _, m := range members {
		h := header(m.name, int64(len(m.bytes)))
		head.Write(h[:])
		head.Write(m.bytes)
		head.Write(make([]byte, padding(int64(len(m.bytes)))))
	}
	if _, err := file.Write(head.Bytes()); err != nil {
		return nil, err
	}
	// In pieces, to end when told to. From file to file the kernel copies, or
	// shares, by copy_file_range(2).
	var at Progress
	if fi, err := rest.Stat(); err == nil {
		begin, _ := rest.Seek(0, io.SeekCurrent)
		at.Total = fi.Size() - begin
	}
	for {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("interrupted: %w", err)
		}
		n, err := file.ReadFrom(&io.LimitedReader{R: rest, N: 64 << 20})
		if err != nil {
			return nil, err
		}
		if n == 0 {
			break
		}
		if at.Done += n; told != nil {
			told("writing", at)
		}
	}
	info, err := file.readBack(ctx, Options{Policy: policy, Progress: told.of("reading back")})
	if err != nil {
		return nil, err
	}
	if info.Digest != s.bundle.Digest {
		return nil, fmt.Errorf("internal error: the finished file is of %s", info.Digest)
	}
	return info, file.finish()
}
