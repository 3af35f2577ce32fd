package check

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/release/internal/arch"
)

// maxProgram bounds one program of a package, in bytes.
const maxProgram = 512 << 20

var machines = map[string]elf.Machine{"x86_64": elf.EM_X86_64, "aarch64": elf.EM_AARCH64}

// packages checks the packages of one repository and returns their files.
func (r *reading) packages(ctx context.Context, architecture string) ([]string, error) {
	version, err := r.manifest.packageVersion()
	if err != nil {
		return nil, err
	}
	var files []string
	for _, name := range slices.Sorted(maps.Keys(packages)) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		file := r.manifest.packageFile(name, architecture, version)
		if err := r.signedPackage(file); err != nil {
			return nil, err
		}
		f, err := r.open(file)
		if err != nil {
			return nil, err
		}
		m, err := arch.ReadMeta(f)
		f.Close()
		if err != nil {
			return nil, wrong(file, err)
		}
		if m.Name != name || m.Version != version || m.Arch != packageArch(name, architecture) || m.BuildDate != int64(r.manifest.Counter) {
			return nil, bad(file, "it is %s %s for %s, built at %d", m.Name, m.Version, m.Arch, m.BuildDate)
		}
		if err := r.content(file, architecture, packages[name]); err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	return files, nil
}

// signedPackage verifies a file for pacman by the signature beside it.
func (r *reading) signedPackage(name string) error {
	sig, err := r.Read(name+trust.PackageSignatureSuffix, trust.MaxPackageSignature)
	if err != nil {
		return err
	}
	f, err := r.open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := r.Policy.VerifyPackage(f, sig, trust.Times{Clock: r.Now}); err != nil {
		return wrong(name, err)
	}
	return nil
}

// content reads what a package brings: its program, which must be one for the
// architecture and the same as everywhere, and its release roots. What is in the
// keyring package must be there in any architecture alike.
func (r *reading) content(file, architecture, program string) error {
	if program == "" {
		return r.same("any", path.Base(file), r.sums[file], file)
	}
	f, err := r.open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	z, err := zstd.NewReader(f, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(128<<20))
	if err != nil {
		return wrong(file, err)
	}
	defer z.Close()
	var sum string
	var roots [][]byte
	t := tar.NewReader(z)
	for {
		h, err := t.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return wrong(file, err)
		}
		switch {
		case h.Name == "usr/bin/"+program:
			sum, err = readProgram(h, t, architecture)
		case strings.HasPrefix(h.Name, "usr/share/nox-mesh/trust/") && h.Typeflag == tar.TypeReg:
			if h.Size > trust.MaxRoot || len(roots) == maxRoots {
				return bad(file, "entry %.80q is too large", h.Name)
			}
			var b []byte
			b, err = io.ReadAll(t)
			roots = append(roots, b)
		}
		if err != nil {
			return wrong(file, fmt.Errorf("entry %.80q: %w", h.Name, err))
		}
	}
	if sum == "" {
		return bad(file, "it has no /usr/bin/%s", program)
	}
	if program == "mesh-host" {
		if err := r.trusted(roots); err != nil {
			return wrong(file, err)
		}
	}
	return r.same(architecture, program, sum, file)
}

// readProgram hashes a program, which must be one for the architecture.
func readProgram(h *tar.Header, content io.Reader, architecture string) (string, error) {
	if h.Typeflag != tar.TypeReg || h.Mode != 0o755 || h.Size > maxProgram {
		return "", errors.New("it is not a program of mode 0755")
	}
	sum := sha256.New()
	var head bytes.Buffer
	// The beginning of an ELF file says its machine.
	if _, err := io.CopyN(io.MultiWriter(sum, &head), content, min(h.Size, 64)); err != nil {
		return "", err
	}
	if _, err := io.Copy(sum, content); err != nil {
		return "", err
	}
	b := head.Bytes()
	if len(b) < 20 || !bytes.HasPrefix(b, []byte(elf.ELFMAG)) || elf.Machine(uint16(b[18])|uint16(b[19])<<8) != machines[architecture] {
		return "", fmt.Errorf("it is not a program for %s", architecture)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
