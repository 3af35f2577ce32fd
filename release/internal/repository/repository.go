// Package repository keeps a pacman repository: a directory of signed packages
// and two signed databases that list them, "db" (what pacman -Sy fetches) and
// "files" (pacman -Fy).
//
//	NAME-VERSION-ARCH.pkg.tar.zst(.sig)   the packages
//	nox-mesh.db(.sig)                     what pacman fetches
//	nox-mesh.db.tar.zst(.sig)             the same file under repo-add(8)'s name
//	nox-mesh.files(.sig), nox-mesh.files.tar.zst(.sig)
//
// Second names are hard links, not symlinks: a web server, a mirror or a bucket
// that follows none serves them all the same. What "desc" and "files" of a
// package say is what repo-add writes, byte by byte, so repo-add can go on from
// here; the archives are the same bytes for the same packages.
//
// A repository is a set of package files. Each name is listed in its newest
// version, as vercmp(8) orders them, whatever the order of adding; of each name
// the newest Keep files stay, so that who holds the database of a moment ago
// still gets its package. Into the set come only packages whose signature
// verifies, whose file name says what they say, and that are not there with
// other bytes; and a database is believed only when its own signature verifies.
//
// A change never touches the directory: a new one is filled beside it, with hard
// links to the packages, made durable, and exchanged with it in one rename. Who
// looks, at any instant and after a kill at any instant, finds the old databases
// with their signatures or the new ones. Over HTTP a change can still fall
// between two requests: pacman then refuses, and the next try succeeds. What a
// kill left beside the directory goes with the next change. Those who change are
// let in one at a time.
//
// It is no mirror and no server, and it does not keep an older database from
// being served again.
package repository

import (
	"io"
	"time"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// Name is the name of the repository: the section of pacman.conf(5), and the
// first part of its databases' names.
const Name = "nox-mesh"

// DefaultKeep is how many versions of a package stay when nobody says.
const DefaultKeep = 2

// The bounds of a repository.
const (
	maxPackages  = 16 << 10
	maxDatabase  = 256 << 20 // as it is on the disk, in bytes
	maxUnpacked  = 512 << 20 // of a database, in bytes
	maxEntryFile = 64 << 20  // of one "desc" or "files", in bytes
	// maxSignature is what repo-add takes and pacman reads, in bytes.
	maxSignature = 16 << 10
)

// A Signer signs databases.
type Signer interface {
	// Sign returns the binary detached OpenPGP signature of message. It is dated
	// date, that of the newest package, so that equal databases are signed with
	// equal bytes.
	Sign(message io.Reader, date time.Time) ([]byte, error)
}

// A Verifier knows whose packages and databases are taken.
type Verifier interface {
	// Verify returns nil when signature is one of message by a trusted key. It
	// refuses armor, several signatures and trailing bytes.
	Verify(message io.Reader, signature []byte) error
}

// Options are what a change and a look need. Verifier is always needed, Signer
// by Add and Remove.
type Options struct {
	Signer   Signer
	Verifier Verifier
	// Keep is how many versions of each package stay; 0 is DefaultKeep.
	Keep int
	// MD5 also writes %MD5SUM%, as repo-add before 6.1 does.
	MD5 bool
	// DryRun does everything but the change.
	DryRun bool
	// Note, if set, is told what a person should know while it takes long.
	Note func(text string)
}

func (o Options) keep() (int, error) {
	if o.Keep < 0 {
		return 0, fault.Usagef("cannot keep %d versions", o.Keep)
	}
	if o.Keep == 0 {
		return DefaultKeep, nil
	}
	return o.Keep, nil
}

// A Package is one package file of a repository.
type Package struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Arch    string `json:"arch"`
	File    string `json:"file"`
	// Size is that of the file, in bytes.
	Size int64 `json:"size"`
	// SHA256 is in hex; empty for a file that is kept, but not listed.
	SHA256 string `json:"sha256,omitempty"`
	// Listed says that the databases name it: it is the newest of its name.
	Listed bool `json:"listed"`
}

// An Outcome is what a change did, or with DryRun would do.
type Outcome struct {
	// Added and Dropped are names of package files, sorted. A package that gets
	// another signature is Added.
	Added   []string `json:"added"`
	Dropped []string `json:"dropped"`
	// Listed is how many packages the databases name afterwards.
	Listed int `json:"listed"`
}
