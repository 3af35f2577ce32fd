// Package pgp tests the programs that users get beside the OpenPGP tools of
// others: keys that mesh-release made, packages that gpg signed with them, and
// mesh-host, which takes less than pacman does.
//
// The table of all attempts, with the answers of pacman and gpg beside ours, is
// the test of bundle/trust; here is what a person sees of it.
package pgp
