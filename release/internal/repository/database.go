package repository

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"
)

// writeDatabase returns the archive of the entries, "db" or, withFiles, "files":
// for each a folder, "desc" and "files", as repo-add has them. Nothing in it
// depends on the machine or the time.
func writeDatabase(entries map[string]*entry, withFiles bool) ([]byte, error) {
	var out bytes.Buffer
	z, err := zstd.NewWriter(&out, zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	w := tar.NewWriter(z)
	member := func(name string, content []byte) error {
		h := &tar.Header{Format: tar.FormatUSTAR, Typeflag: tar.TypeReg, Name: name, Size: int64(len(content)), Mode: 0o644, ModTime: time.Unix(0, 0)}
		if content == nil {
			h.Typeflag, h.Mode = tar.TypeDir, 0o755
		}
		if err := w.WriteHeader(h); err != nil {
			return err
		}
		_, err := w.Write(content)
		return err
	}
	sorted := slices.SortedFunc(maps.Values(entries), func(a, b *entry) int { return strings.Compare(a.folder(), b.folder()) })
	for _, e := range sorted {
		err := member(e.folder()+"/", nil)
		if err == nil {
			err = member(e.folder()+"/desc", e.desc)
		}
		if err == nil && withFiles {
			err = member(e.folder()+"/files", e.files)
		}
		if err != nil {
			return nil, fmt.Errorf("cannot write %q into the database: %w", e.folder(), err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	if out.Len() > maxDatabase {
		return nil, fmt.Errorf("the database has more than %d bytes", maxDatabase)
	}
	return out.Bytes(), nil
}

// readDatabase reads what writeDatabase and repo-add write. The entries are by
// name of the package.
func readDatabase(b []byte, withFiles bool) (map[string]*entry, error) {
	if len(b) == 0 { // what a power cut leaves of a file that was not synced
		return nil, errors.New("it is empty")
	}
	z, err := zstd.NewReader(bytes.NewReader(b), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(64<<20))
	if err != nil {
		return nil, err
	}
	defer z.Close()
	all := &io.LimitedReader{R: z, N: maxUnpacked}
	members, err := readMembers(all, withFiles)
	if err != nil && all.N == 0 {
		err = fmt.Errorf("it has more than %d bytes unpacked", maxUnpacked)
	}
	if err != nil {
		return nil, err
	}
	entries := map[string]*entry{}
	for folder, m := range members {
		if m["desc"] == nil || withFiles != (m["files"] != nil) {
			return nil, fmt.Errorf("entry %.80q is not whole", folder)
		}
		e, err := parseEntry(folder, m["desc"], m["files"])
		if err != nil {
			return nil, fmt.Errorf("entry %.80q: %w", folder, err)
		}
		if entries[e.Name] != nil {
			return nil, fmt.Errorf("package %q is there twice", e.Name)
		}
		entries[e.Name] = e
	}
	return entries, nil
}

// readMembers reads the archive to its end: folders, and in them regular files
// called "desc" and "files", none twice. Each is by its folder and name.
func readMembers(r io.Reader, withFiles bool) (map[string]map[string][]byte, error) {
	members := map[string]map[string][]byte{}
	t := tar.NewReader(r)
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return members, onlyZeros(r)
		}
		if err != nil {
			return nil, err
		}
		folder, name, _ := strings.Cut(h.Name, "/")
		if members[folder] == nil {
			if len(members) == maxPackages {
				return nil, fmt.Errorf("it has more than %d packages", maxPackages)
			}
			members[folder] = map[string][]byte{}
		}
		switch {
		case h.Typeflag == tar.TypeDir && name == "":
		case h.Typeflag == tar.TypeReg && (name == "desc" || name == "files" && withFiles):
			if members[folder][name] != nil {
				return nil, fmt.Errorf("member %.80q is there twice", h.Name)
			}
			if h.Size > maxEntryFile {
				return nil, fmt.Errorf("member %.80q has more than %d bytes", h.Name, maxEntryFile)
			}
			b, err := io.ReadAll(t)
			if err != nil {
				return nil, err
			}
			members[folder][name] = b
		default:
			return nil, fmt.Errorf("member %.80q does not belong into a database", h.Name)
		}
	}
}

// onlyZeros reads r to its end, which holds what fills up a tape's last record.
func onlyZeros(r io.Reader) error {
	b := make([]byte, 32<<10)
	for {
		n, err := r.Read(b)
		if len(bytes.Trim(b[:n], "\x00")) > 0 {
			return errors.New("something follows the end of the archive")
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
