package arch

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
)

// mtree returns the .MTREE of the plan's entries, mtree(5) in gzip: what
// "pacman -Qkk" compares a machine with.
func (p *plan) mtree() ([]byte, error) {
	var b bytes.Buffer
	b.WriteString("#mtree\n")
	for _, e := range p.entries {
		fmt.Fprintf(&b, "./%s time=%d.0 uid=%d gid=%d mode=%o ",
			mtreeEscape(e.path), p.time.Unix(), number(e.owner), number(e.group), e.mode)
		switch e.kind {
		case tar.TypeDir:
			b.WriteString("type=dir\n")
		case tar.TypeSymlink:
			fmt.Fprintf(&b, "type=link link=%s\n", mtreeEscape(e.link))
		default:
			fmt.Fprintf(&b, "type=file size=%d md5digest=%x sha256digest=%x\n", e.size, e.md5, e.sha256)
		}
	}
	var out bytes.Buffer
	// The zero header: no name, no time, no system (RFC 1952).
	z, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := z.Write(b.Bytes()); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// mtreeEscape writes every byte that is not plain as a backslash and three octal
// digits: a line of mtree(5) is words, and "#" and "=" mean something in it.
func mtreeEscape(s string) string {
	var b bytes.Buffer
	for i := range len(s) {
		c := s[i]
		switch {
		case c >= '0' && c <= '9', c >= 'A' && c <= 'Z', c >= 'a' && c <= 'z', bytes.IndexByte([]byte("/._-+@,:"), c) >= 0:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, `\%03o`, c)
		}
	}
	return b.String()
}
