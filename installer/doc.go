// Package installer lays the host on a machine from an unpacked floor tarball,
// and takes it away again.
//
// Install verifies before it touches: the signed MANIFEST against the release
// roots this machine trusts (a first install takes the chain it finds in the
// tarball, which is as trustworthy as the download, and prints its
// fingerprint), then every file against the MANIFEST. Every binary is tried
// with "version" in the very place it is to run from, and every file is put
// there by a rename, so a running host keeps its own binary and nothing is ever
// half there.
//
// It believes nothing that somebody other than root (or the ordinary user it
// runs as, under another root) could have put there: every directory on the way
// of a place is looked at before anything is read or touched, a symlink that
// leads out of the root is refused, and a launcher copy of unknown content is
// replaced and never run. Uninstall goes nowhere an install would not go.
//
// What is about to be laid down is written to install.json first, with the
// digests of the old and the new content. A kill at any instant therefore
// leaves either nothing, or a state that another Install completes and
// Uninstall recognises as ours. The only trace that can outlive both is an
// empty directory above the state directory, when the kill hits between
// making the two.
//
// Uninstall takes away what install.json names and is still what was
// installed. What a person changed is kept, and said. The state of the host
// stays unless it is to be purged.
//
// HandOver has a tarball's host make way for the one of a package, which runs
// it: it takes away as Uninstall does, the unit first, and leaves state, launcher
// and configuration. Install refuses where a package owns the host. Uninstall can
// be dry, which is how a person is shown what goes.
//
// The installer does not know the host: whether it owns resources, and how to
// ask it for a pass, are handed in.
package installer
