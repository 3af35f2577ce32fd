package pkgbuild

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"
)

// The members of a floor tarball that are about the tarball itself; a MANIFEST
// names neither.
const (
	ManifestName  = "MANIFEST"
	SignatureName = "MANIFEST.sigstore.json"
)

// The bounds of a MANIFEST.
const (
	MaxManifestSize = 256 << 10
	maxMembers      = 1024
	// maxMemberSize is below what a USTAR header can say (8 GiB).
	maxMemberSize = 1 << 30
)

const manifestMagic = "nox-mesh-floor-1"

// A Manifest says what a floor tarball is and holds, in the order of the
// tarball.
type Manifest struct {
	// Version is the release, without a leading "v".
	Version string
	// Architecture is the machine it runs on, as uname -m says: "x86_64",
	// "aarch64".
	Architecture string
	Members      []Member
}

// A Member is one file of a floor tarball.
type Member struct {
	// Path is relative to the top folder: segments of letters, digits and
	// "._+-", none of them starting with a dot.
	Path string
	// Mode is 0644 or 0755.
	Mode uint32
	// Size is in bytes.
	Size int64
	// SHA256 is the digest of the content, in lower-case hex.
	SHA256 string
}

// Member returns the member at path p.
func (m Manifest) Member(p string) (Member, bool) {
	for _, member := range m.Members {
		if member.Path == p {
			return member, true
		}
	}
	return Member{}, false
}

// Encode returns the text of the manifest: a line for the release and one for
// each member, "SHA256 SIZE MODE PATH". It does not check m; ParseManifest
// refuses what must not be.
func (m Manifest) Encode() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s %s\n", manifestMagic, m.Version, m.Architecture)
	for _, f := range m.Members {
		fmt.Fprintf(&b, "%s %d %04o %s\n", f.SHA256, f.Size, f.Mode, f.Path)
	}
	return b.Bytes()
}

// ParseManifest reads what Encode wrote and nothing else: no other spelling of
// a number, no duplicate, no path that is absolute, leads out or lies below
// another member, nothing after the last line.
func ParseManifest(b []byte) (Manifest, error) {
	if len(b) > MaxManifestSize {
		return Manifest{}, fmt.Errorf("cannot read manifest: more than %d bytes", MaxManifestSize)
	}
	text, ok := strings.CutSuffix(string(b), "\n")
	if !ok {
		return Manifest{}, errors.New("cannot read manifest: it does not end with a line break")
	}
	lines := strings.Split(text, "\n")
	if len(lines)-1 > maxMembers {
		return Manifest{}, fmt.Errorf("cannot read manifest: more than %d members", maxMembers)
	}
	m, err := parseHead(lines[0])
	if err != nil {
		return Manifest{}, fmt.Errorf("cannot read manifest: line 1: %w", err)
	}
	for i, line := range lines[1:] {
		f, err := parseMember(line)
		if err != nil {
			return Manifest{}, fmt.Errorf("cannot read manifest: line %d: %w", i+2, err)
		}
		m.Members = append(m.Members, f)
	}
	if err := checkPaths(m.Members); err != nil {
		return Manifest{}, fmt.Errorf("cannot read manifest: %w", err)
	}
	return m, nil
}

func parseHead(line string) (Manifest, error) {
	f := strings.Split(line, " ")
	if len(f) != 3 || f[0] != manifestMagic {
		return Manifest{}, fmt.Errorf("not %q, a version and an architecture", manifestMagic)
	}
	if !isSegment(f[1]) || !isSegment(f[2]) {
		return Manifest{}, errors.New("version or architecture is not a plain word")
	}
	return Manifest{Version: f[1], Architecture: f[2]}, nil
}

func parseMember(line string) (Member, error) {
	f := strings.Split(line, " ")
	if len(f) != 4 {
		return Member{}, errors.New("not four fields")
	}
	sum, err := hex.DecodeString(f[0])
	if err != nil || len(sum) != 32 || strings.ToLower(f[0]) != f[0] {
		return Member{}, fmt.Errorf("%.80q is not a SHA-256", f[0])
	}
	size, err := strconv.ParseInt(f[1], 10, 64)
	if err != nil || size < 0 || size > maxMemberSize || strconv.FormatInt(size, 10) != f[1] {
		return Member{}, fmt.Errorf("%.80q is not a size", f[1])
	}
	var mode uint32
	switch f[2] {
	case "0644":
		mode = 0o644
	case "0755":
		mode = 0o755
	default:
		return Member{}, fmt.Errorf("mode %.80q is neither 0644 nor 0755", f[2])
	}
	return Member{Path: f[3], Mode: mode, Size: size, SHA256: f[0]}, nil
}

// checkPaths holds the rules of the tree: every name plain, none twice, none
// both a file and a folder.
func checkPaths(members []Member) error {
	files := map[string]bool{ManifestName: true, SignatureName: true}
	for _, f := range members {
		if len(f.Path) > 200 {
			return errors.New("a path is longer than 200 bytes")
		}
		for _, s := range strings.Split(f.Path, "/") {
			if !isSegment(s) {
				return fmt.Errorf("path %.80q is not plain and relative", f.Path)
			}
		}
		if files[f.Path] {
			return fmt.Errorf("path %q is there twice", f.Path)
		}
		files[f.Path] = true
	}
	for _, f := range members {
		for dir := path.Dir(f.Path); dir != "."; dir = path.Dir(dir) {
			if files[dir] {
				return fmt.Errorf("path %q lies below the file %q", f.Path, dir)
			}
		}
	}
	return nil
}

// isSegment reports whether s can be one part of a path: it says nothing to a
// shell, a tar or a file system, and "." and ".." are none.
func isSegment(s string) bool {
	if s == "" || len(s) > 100 || s[0] == '.' || s[0] == '-' {
		return false
	}
	for i := range len(s) {
		c := s[i]
		switch {
		case c >= '0' && c <= '9', c >= 'A' && c <= 'Z', c >= 'a' && c <= 'z':
		case c == '.', c == '_', c == '+', c == '-':
		default:
			return false
		}
	}
	return true
}
