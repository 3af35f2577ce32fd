package packages

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/internal/durable"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// Content is where content lies by its digest.
type Content interface {
	// Open opens the content for reading. It may be damaged: it is hashed on
	// the way.
	Open(digest.Digest) (*os.File, error)
	// Read returns a small blob, hashed.
	Read(d digest.Digest, max int64) ([]byte, error)
	// Drop throws away content that was found to be damaged, so that it is
	// fetched again.
	Drop(digest.Digest) error
}

// take copies the declared package to where only we write, verifies the copy,
// and returns it with its version. A copy and no hard link: what was hashed is
// then what the manager reads, whatever becomes of the content store.
func (k *Kind) take(ctx context.Context, p *declaration.Package) (file, version string, err error) {
	if err := durable.MkdirAll(k.private(), privateMode); err != nil {
		return "", "", err
	}
	if err := k.sweep(p.Name); err != nil {
		return "", "", err
	}
	file = k.copyOf(p.Name)
	if err := k.copy(ctx, p.Source, file); err != nil {
		return "", "", err
	}
	if p.Signature != "" {
		if err := k.verify(file, p.Signature); err != nil {
			return "", "", err
		}
	}
	name, version, err := k.Manager.Describe(ctx, file)
	switch {
	case err != nil:
		return "", "", err
	case name != p.Name:
		return "", "", fault.Refusedf("what is declared as its source is the package %q", name)
	case p.Version != "" && version != p.Version:
		return "", "", fault.Refusedf("what is declared as its source has the version %s, declared is %s", version, p.Version)
	}
	return file, version, nil
}

func (k *Kind) copyOf(name string) string {
	return filepath.Join(k.private(), name+k.Manager.Suffix())
}

// sweep throws away a copy, and half of one.
func (k *Kind) sweep(name string) error {
	file := k.copyOf(name)
	var errs []error
	for _, f := range []string{file, file + trust.PackageSignatureSuffix} {
		for _, name := range []string{f, filepath.Join(filepath.Dir(f), durable.TempName(filepath.Base(f)))} {
			if _, err := os.Lstat(name); err == nil {
				errs = append(errs, durable.Remove(name))
			}
		}
	}
	return errors.Join(errs...)
}

func (k *Kind) copy(ctx context.Context, source digest.Digest, file string) error {
	in, err := k.Content.Open(source)
	if err != nil {
		return err
	}
	defer in.Close()
	d, err := durable.OpenDir(filepath.Dir(file))
	if err != nil {
		return err
	}
	defer d.Close()
	out, err := d.Create(filepath.Base(file), durable.Perm(0o644))
	if err != nil {
		return err
	}
	h := digest.SHA256.Digester()
	_, err = io.Copy(io.MultiWriter(out, h.Hash()), whileWanted{ctx, in})
	if err == nil && h.Digest() != source {
		err = fault.Refusedf("the content store is damaged: %s holds %s", source, h.Digest())
		if drop := k.Content.Drop(source); drop != nil {
			err = errors.Join(err, drop)
		}
	}
	if err != nil {
		out.Abort()
		return fmt.Errorf("cannot copy it: %w", err)
	}
	return out.Commit()
}

// verify verifies the file by a signature of the content store, and puts that
// beside it.
func (k *Kind) verify(file string, signature digest.Digest) error {
	sig, err := k.Content.Read(signature, trust.MaxPackageSignature)
	if err != nil {
		return err
	}
	policy, err := k.Trust()
	if err != nil {
		return err
	}
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := policy.VerifyPackage(f, sig, k.times()); err != nil {
		return err
	}
	return durable.WriteFile(file+trust.PackageSignatureSuffix, sig, 0o644)
}

// times are the moments known to have passed. The binary has the time of its
// commit, or of the day it was built here.
func (k *Kind) times() trust.Times {
	t := trust.Times{Clock: k.Clock.Now()}
	if fi, err := os.Stat("/proc/self/exe"); err == nil {
		t.Build = fi.ModTime()
	}
	return t
}

// whileWanted reads until its context ends.
type whileWanted struct {
	ctx context.Context
	r   io.Reader
}

func (w whileWanted) Read(b []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	return w.r.Read(b)
}
