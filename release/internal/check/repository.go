package check

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/release/internal/place"
	"github.com/nox-mesh/nox-mesh/release/internal/repository"
)

// maxDatabase bounds a database, unpacked, in bytes.
const maxDatabase = 512 << 20

func (r *reading) repositories(ctx context.Context) error {
	count := 0
	err := r.each(repositoryName, func(arch, dir string) error {
		files, err := r.packages(ctx, arch)
		if err != nil {
			return err
		}
		count += len(files)
		return r.databases(ctx, dir, files)
	})
	if err != nil {
		return err
	}
	n := 0
	for _, arch := range r.report.Architectures {
		n += len(r.programs[arch])
	}
	r.tell("packages", count, "signature, metadata, version, architecture, date")
	r.tell("databases", 2*len(r.report.Architectures), "signature; derived again from the packages: the same")
	r.tell("programs", n, "the same bytes wherever they are")
	return nil
}

// databases derives the databases of a repository from its packages and compares.
// Unpacked: another version of the compressor may write other bytes, and what is
// there is signed and listed as it is.
func (r *reading) databases(ctx context.Context, dir string, files []string) (err error) {
	for _, name := range databases() {
		if err := r.signedPackage(path.Join(dir, name)); err != nil {
			return err
		}
	}
	for _, base := range []string{".db", ".files"} {
		for _, suffix := range []string{"", trust.PackageSignatureSuffix} {
			short, long := path.Join(dir, repository.Name+base+suffix), path.Join(dir, repository.Name+base+".tar.zst"+suffix)
			if r.sums[short] != r.sums[long] {
				return bad(long, "it is not the same as %q", short)
			}
		}
	}
	temp, done, err := place.Temp()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	var paths []string
	for _, f := range files {
		paths = append(paths, filepath.Join(r.dir, f))
	}
	derived := filepath.Join(temp, "derived")
	if _, err := repository.Add(ctx, derived, paths, repository.Options{Signer: derivation{}, Verifier: derivation{r}}); err != nil {
		return wrong(dir, err)
	}
	for _, base := range []string{".db", ".files"} {
		name := path.Join(dir, repository.Name+base)
		there, err := unpack(filepath.Join(r.dir, name))
		if err != nil {
			return wrong(name, err)
		}
		ours, err := unpack(filepath.Join(derived, repository.Name+base))
		if err != nil {
			return err
		}
		if !bytes.Equal(there, ours) {
			return bad(name, "it does not say what the packages say")
		}
	}
	return nil
}

// A derivation signs databases that nobody will use. The packages have been
// verified before.
type derivation struct{ of *reading }

var derivedSignature = []byte("derived, not signed")

func (derivation) Sign(message io.Reader, _ time.Time) ([]byte, error) {
	_, err := io.Copy(io.Discard, message)
	return derivedSignature, err
}

func (d derivation) Verify(message io.Reader, signature []byte) error {
	if bytes.Equal(signature, derivedSignature) {
		return nil
	}
	_, err := d.of.Policy.VerifyPackage(message, signature, trust.Times{Clock: d.of.Now})
	return err
}

func unpack(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := zstd.NewReader(f, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(64<<20))
	if err != nil {
		return nil, err
	}
	defer z.Close()
	b, err := io.ReadAll(io.LimitReader(z, maxDatabase+1))
	if err == nil && len(b) > maxDatabase {
		err = errors.New("it is too large")
	}
	if err != nil {
		return nil, fmt.Errorf("cannot unpack: %w", err)
	}
	return b, nil
}
