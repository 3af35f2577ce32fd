package backup

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

const (
	format = "nox-mesh backup"
	// Version is that of the format that this program writes; it reads it and all
	// before it.
	Version = 1
	// maxManifest is a mesh of some hundred thousand nodes and as many blobs.
	maxManifest = 64 << 20
	// maxSmall bounds a file that is read into memory.
	maxSmall = 2 << 20

	manifestName = "manifest.json"
	// The names of the files. Each is where it lies beside the state, too.
	State   = "state.db"
	Founded = "mesh.json"
	Trust   = "trust.json"
	Config  = "controller.toml"
	// blobPrefix is before the digest of content, in hex.
	blobPrefix = "content/sha256/"
)

// A Manifest says what is in a backup.
type Manifest struct {
	Format  string `json:"format"`
	Version int    `json:"version"`
	// Made is when, By the version of the program.
	Made time.Time `json:"made"`
	By   string    `json:"by"`
	// Mesh, Pin (of its root) and Epoch say whose state it is.
	Mesh      string   `json:"mesh"`
	Pin       string   `json:"pin"`
	Epoch     uint64   `json:"epoch"`
	Addresses []string `json:"addresses"`
	Nodes     []Node   `json:"nodes"`
	Modules   []string `json:"modules"`
	// WithoutContent says that the content was left out.
	WithoutContent bool   `json:"without_content,omitempty"`
	Files          []File `json:"files"`
}

// A Node is a node as a person knows it.
type Node struct {
	ID    string `json:"id"`
	Name  string `json:"name,omitempty"`
	State string `json:"state"`
}

// A File is one file of a backup. The SHA-256 of content is in its name.
type File struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256,omitempty"`
}

// Blob is the file of content with that digest, in hex.
func Blob(hex string, size int64) File { return File{Name: blobPrefix + hex, Size: size} }

// Digest returns the digest of content in hex, and whether it is content.
func (f File) Digest() (hex string, ok bool) { return strings.CutPrefix(f.Name, blobPrefix) }

func (f File) sum() string {
	if hex, ok := f.Digest(); ok {
		return hex
	}
	return f.SHA256
}

// Content is how many blobs there are, and their bytes.
func (m *Manifest) Content() (blobs int, bytes int64) {
	for _, f := range m.Files {
		if _, ok := f.Digest(); ok {
			blobs, bytes = blobs+1, bytes+f.Size
		}
	}
	return blobs, bytes
}

// Size is the bytes of all files.
func (m *Manifest) Size() (bytes int64) {
	for _, f := range m.Files {
		bytes += f.Size
	}
	return bytes
}

// parse reads a manifest.
func parse(b []byte) (*Manifest, error) {
	var head struct {
		Format  string `json:"format"`
		Version int    `json:"version"`
	}
	if err := json.Unmarshal(b, &head); err != nil || head.Format != format {
		return nil, damaged("it does not begin as a backup does")
	}
	if head.Version > Version {
		return nil, fault.Refusedf("it is of format %d, and this program reads up to %d", head.Version, Version).
			Hint("restore it with a mesh-controller that is as new as the one that made it")
	}
	m := new(Manifest)
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(m); err != nil || head.Version < 1 {
		return nil, damaged("its manifest cannot be read")
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, damaged("something is behind its manifest")
	}
	return m, m.check()
}

// check says whether the files are those a backup may have, each once.
func (m *Manifest) check() error {
	fixed := []string{State, Founded, Trust, Config}
	seen := map[string]bool{}
	for _, f := range m.Files {
		small := f.Name != State && slices.Contains(fixed, f.Name)
		_, blob := f.Digest()
		known := blob || slices.Contains(fixed, f.Name)
		if sum, err := hex.DecodeString(f.sum()); err != nil || len(sum) != 32 || strings.ToLower(f.sum()) != f.sum() || !known ||
			seen[f.Name] || f.Size < 0 || small && f.Size > maxSmall {
			return damaged(fmt.Sprintf("its manifest names a file that a backup has not: %.80q", f.Name))
		}
		seen[f.Name] = true
	}
	if !seen[State] || !seen[Founded] || m.Mesh == "" || m.Epoch == 0 {
		return damaged("its manifest names no state")
	}
	return nil
}

func damaged(how string) error {
	return fault.Refusedf("it is damaged, or no backup: %s", how).Hint("take another copy of it, or an earlier backup")
}
