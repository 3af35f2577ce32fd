package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// A comparison is how a file of a release compares to the one built again.
type comparison struct {
	Name string `json:"name"`
	Same bool   `json:"same"`
	// How says what is different.
	How string `json:"how,omitempty"`
	// Taken says that a signature which it is, or holds, was not made again but
	// taken from the release, as it covers what was built.
	Taken bool `json:"signature_taken,omitempty"`
}

// compare compares all files of two directories; a folder that only one has is
// different too.
func compare(dir, again string) ([]comparison, error) {
	names := map[string]bool{}
	for _, top := range []string{dir, again} {
		err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
			if err != nil || path == top {
				return err
			}
			name, err := filepath.Rel(top, path)
			names[name] = true
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("cannot compare release: %w", err)
		}
	}
	var out []comparison
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if isFolder(filepath.Join(dir, name)) && isFolder(filepath.Join(again, name)) {
			continue
		}
		how, err := difference(filepath.Join(dir, name), filepath.Join(again, name))
		if err != nil {
			return nil, fmt.Errorf("cannot compare %q: %w", name, err)
		}
		out = append(out, comparison{Name: name, Same: how == "", How: how})
	}
	return out, nil
}

func isFolder(path string) bool {
	fi, err := os.Lstat(path)
	return err == nil && fi.IsDir()
}

// difference says how the second file differs from the first, or "".
func difference(first, second string) (string, error) {
	for _, side := range []struct{ path, how string }{{first, "only built again"}, {second, "not built again"}} {
		if _, err := os.Lstat(side.path); errors.Is(err, fs.ErrNotExist) {
			return side.how, nil
		} else if err != nil {
			return "", err
		}
	}
	for _, path := range []string{first, second} {
		if fi, err := os.Lstat(path); err != nil || !fi.Mode().IsRegular() {
			return "not a regular file", err
		}
	}
	a, err := os.Open(first)
	if err != nil {
		return "", err
	}
	defer a.Close()
	b, err := os.Open(second)
	if err != nil {
		return "", err
	}
	defer b.Close()
	x, y := bufio.NewReaderSize(a, 64<<10), bufio.NewReaderSize(b, 64<<10)
	for at := int64(0); ; at++ {
		c, errX := x.ReadByte()
		d, errY := y.ReadByte()
		for _, err := range []error{errX, errY} {
			if err != nil && err != io.EOF {
				return "", err
			}
		}
		switch {
		case errX == io.EOF && errY == io.EOF:
			return "", nil
		case errX != errY || c != d:
			return fmt.Sprintf("byte %d", at), nil
		}
	}
}
