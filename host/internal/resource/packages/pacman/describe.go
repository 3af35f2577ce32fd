package pacman

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/nox-mesh/nox-mesh/internal/child"
)

const (
	bsdtar     = "/usr/bin/bsdtar"
	maxPkginfo = 1 << 20
	// maxHead is how much of an archive is unpacked to find .PKGINFO, which is
	// among the first (PKGBUILD(5)).
	maxHead = 256 << 20
	// maxWindow bounds the memory that an archive may ask for.
	maxWindow = 128 << 20
)

// Describe says what package the file is, by its .PKGINFO.
func (*Manager) Describe(ctx context.Context, file string) (name, version string, err error) {
	info, err := pkginfo(ctx, file)
	if err != nil {
		return "", "", fmt.Errorf("cannot read the package: %w", err)
	}
	for line := range strings.Lines(string(info)) {
		k, v, _ := strings.Cut(line, "=")
		switch strings.TrimSpace(k) {
		case "pkgname":
			name = strings.TrimSpace(v)
		case "pkgver":
			version = strings.TrimSpace(v)
		}
	}
	if name == "" || version == "" {
		return "", "", errors.New("cannot read the package: its .PKGINFO names no package")
	}
	return name, version, nil
}

func pkginfo(ctx context.Context, file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	in := bufio.NewReader(f)
	magic, _ := in.Peek(6)
	var r io.Reader = in
	switch {
	case bytes.HasPrefix(magic, []byte("\x28\xb5\x2f\xfd")):
		z, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderMaxMemory(maxHead))
		if err != nil {
			return nil, err
		}
		defer z.Close()
		r = z
	case bytes.HasPrefix(magic, []byte("\x1f\x8b")):
		if r, err = gzip.NewReader(in); err != nil {
			return nil, err
		}
	case bytes.HasPrefix(magic, []byte("\xfd7zXZ")), bytes.HasPrefix(magic, []byte("BZh")):
		res, err := child.Run(ctx, child.Command{Path: bsdtar, Args: []string{"-xOqf", file, ".PKGINFO"}, MaxOutput: maxPkginfo})
		return res.Stdout, err
	}
	t := tar.NewReader(io.LimitReader(r, maxHead))
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil, errors.New("it has no .PKGINFO")
		}
		if err != nil {
			return nil, err
		}
		if h.Name == ".PKGINFO" && h.Size <= maxPkginfo {
			return io.ReadAll(t)
		}
	}
}
