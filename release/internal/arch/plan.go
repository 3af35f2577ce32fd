package arch

import (
	"archive/tar"
	"cmp"
	"context"
	"crypto/md5"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goreleaser/nfpm/v2"
	"github.com/goreleaser/nfpm/v2/files"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// An entry is one thing in the archive.
type entry struct {
	path         string // relative, without a slash at the end
	kind         byte   // tar.TypeReg, tar.TypeDir, tar.TypeSymlink; TypeLink when read
	mode         int64  // as chmod(2) takes it
	owner, group string
	link         string
	size         int64
	md5          [md5.Size]byte
	sha256       [sha256.Size]byte

	source  string // where the content is, or
	content []byte // the content itself: metadata
}

// A plan is an archive, entry by entry, before the first byte is written.
type plan struct {
	time    time.Time
	entries []entry // metadata, then the rest in the order of makepkg(8)
}

// newPlan reads everything once: digests stand before contents in a package.
func newPlan(ctx context.Context, p Package) (*plan, error) {
	info, err := prepare(p.Info)
	if err != nil {
		return nil, err
	}
	pl := &plan{time: info.MTime}
	var backup []string
	var size int64
	for _, c := range info.Contents {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if c.IsDir() && strings.Trim(c.Destination, "/") == "" {
			continue // the top of a tree that is a whole package
		}
		e, err := entryOf(c)
		if err != nil {
			return nil, err
		}
		if size += e.size; size > MaxUnpacked || len(pl.entries) >= MaxFiles {
			return nil, fault.Usagef("it is more than %d files or %d bytes", MaxFiles, int64(MaxUnpacked))
		}
		if strings.HasPrefix(c.Type, files.TypeConfig) {
			backup = append(backup, e.path)
		}
		pl.entries = append(pl.entries, e)
	}
	byPath := func(a, b entry) int { return cmp.Compare(a.path, b.path) }
	slices.SortFunc(pl.entries, byPath)
	slices.Sort(backup)
	meta, err := metaOf(info, p.MakeDepends, size, backup)
	if err != nil {
		return nil, err
	}
	install, err := scriptlet(ctx, p.Install, info)
	if err != nil {
		return nil, err
	}
	pl.entries = slices.Concat(metadata(map[string][]byte{
		".BUILDINFO": buildInfo(meta, p.Recipe), ".INSTALL": install, ".PKGINFO": meta.pkgInfo(),
	}), pl.entries)
	mtree, err := pl.mtree()
	if err != nil {
		return nil, err
	}
	pl.entries = append(metadata(map[string][]byte{".MTREE": mtree}), pl.entries...)
	slices.SortFunc(pl.entries, byPath)
	return pl, nil
}

// prepare has nfpm resolve a copy of the model: globs, trees, parents, defaults.
func prepare(original *nfpm.Info) (*nfpm.Info, error) {
	info := *original
	if info.Platform != "" && info.Platform != "linux" {
		return nil, fault.Usagef("its platform is %q, not linux", info.Platform)
	}
	if info.MTime.IsZero() || info.MTime.Unix() < 0 || info.MTime.Unix() >= 1<<33 {
		return nil, fault.Usagef("it has no time (MTime), or one an archive cannot say")
	}
	info.MTime = info.MTime.UTC().Truncate(time.Second)
	info.Contents = make(files.Contents, 0, len(original.Contents))
	for _, c := range original.Contents {
		// nfpm takes what is in a folder, and if there is nothing says nothing.
		if fi, err := os.Stat(c.Source); err == nil && fi.IsDir() && (c.Type == "" || c.Type == files.TypeFile || strings.HasPrefix(c.Type, files.TypeConfig)) {
			return nil, fault.Usagef("%q is a folder", c.Source).Hint("give it the type %q", files.TypeTree)
		}
		own := *c
		if c.FileInfo != nil {
			fi := *c.FileInfo
			own.FileInfo = &fi
		}
		info.Contents = append(info.Contents, &own)
	}
	return &info, nfpm.PrepareForPackager(&info, Format)
}

func entryOf(c *files.Content) (entry, error) {
	e := entry{
		path: strings.Trim(c.Destination, "/"), mode: unixMode(c.Mode()),
		owner: c.FileInfo.Owner, group: c.FileInfo.Group,
	}
	if err := checkDestination(e.path); err != nil {
		return entry{}, err
	}
	for _, name := range []string{e.owner, e.group} {
		if !ownerPattern.MatchString(name) {
			return entry{}, fault.Usagef("%q has the owner or group %.80q, which is no name", e.path, name)
		}
	}
	var err error
	switch c.Type {
	case files.TypeDir, files.TypeImplicitDir:
		e.kind = tar.TypeDir
	case files.TypeSymlink:
		e.kind, e.mode, e.link = tar.TypeSymlink, 0o777, c.Source
		if e.link == "" || len(e.link) > maxPath || hasControl(e.link) {
			err = fault.Usagef("%q points to %.80q, which is no path", e.path, e.link)
		}
	default:
		e.kind, e.source = tar.TypeReg, c.Source
		err = e.digestSource()
	}
	return e, err
}

// unixMode returns the mode as chmod(2) takes it. nfpm holds what a person wrote
// as unix bits (04755) and what it read from a file as Go's.
func unixMode(m fs.FileMode) int64 {
	bits := int64(m & 0o7777)
	for flag, bit := range map[fs.FileMode]int64{fs.ModeSetuid: 0o4000, fs.ModeSetgid: 0o2000, fs.ModeSticky: 0o1000} {
		if m&flag != 0 {
			bits |= bit
		}
	}
	return bits
}

// metadata makes entries of those contents that there are, unsorted.
func metadata(contents map[string][]byte) []entry {
	var list []entry
	for name, b := range contents {
		if b == nil {
			continue
		}
		list = append(list, entry{
			path: name, kind: tar.TypeReg, mode: 0o644, owner: "root", group: "root",
			size: int64(len(b)), md5: md5.Sum(b), sha256: sha256.Sum256(b), content: b,
		})
	}
	slices.SortFunc(list, func(a, b entry) int { return cmp.Compare(a.path, b.path) })
	return list
}

// compare checks that what was read back is what was planned.
func (p *plan) compare(found []entry) error {
	if len(found) != len(p.entries) {
		return fmt.Errorf("it has %d entries, not %d", len(found), len(p.entries))
	}
	for i, e := range found {
		w := p.entries[i]
		if e.path != w.path || e.kind != w.kind || e.mode != w.mode || e.owner != w.owner || e.group != w.group ||
			e.link != w.link || e.size != w.size || e.sha256 != w.sha256 {
			return fmt.Errorf("entry %q is not as it was written", w.path)
		}
	}
	return nil
}

// number is the id an archive gives beside a name, for where there is nobody of
// that name: a number stands for itself, root is 0, others are nobody, so that
// a setuid file of an account that is missing does not become root's.
func number(name string) int {
	if n, err := strconv.ParseUint(name, 10, 31); err == nil {
		return int(n)
	}
	if name == "root" {
		return 0
	}
	return 65534
}
