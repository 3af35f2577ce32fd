// Package database is what the database of a package manager says of one
// package, in words that all managers share. Who reads which files for it is
// told in the packages beside this one; nothing here looks at the machine.
//
// A database is other people's bytes: whoever reads one bounds what it reads,
// and takes no path from it that leaves the root.
package database

import "path"

// A Package is what is written of one package.
type Package struct {
	// Installed: there is an entry of a package that is installed, or was to
	// be. One that was removed and left its configuration is not.
	Installed bool
	Version   string
	// Broken says why what is installed is not whole by the database's own word
	// ("half-installed"), or is "".
	Broken string
	// Held says who holds it as it is (`IgnorePkg in "/etc/pacman.conf" names
	// it`) and how that ends, or is "".
	Held string
	// Files are what it consists of. Those that the machine is configured to
	// leave out are not among them.
	Files []File
}

// A Kind is what a packaged file is.
type Kind int

// The kinds.
const (
	// Any is known to be there, and nothing more.
	Any Kind = iota
	Regular
	Directory
	Symlink
)

// A File is one file of a package.
type File struct {
	// Path is that on the machine, absolute and clean.
	Path string
	Kind Kind
	// Config: the administrator may change and remove it; the package manager
	// would not put it back.
	Config bool
	// Sum is the digest of a regular file in lower-case hex, "" if nobody
	// wrote it down; its length says by which function: MD5 or SHA-256.
	Sum string
	// Size is that of a regular file, -1 if nobody wrote it down.
	Size int64
	// Target is that of a symlink, "" if nobody wrote it down.
	Target string
}

// Clean returns the absolute path of a name in a database ("usr/bin/x",
// "./usr/bin/x", "/usr/bin/x"), which cannot leave the root.
func Clean(name string) string { return path.Join("/", path.Clean("/"+name)) }
