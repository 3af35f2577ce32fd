// Package trust decides whose signature counts, and makes the signatures.
//
// Its story: a machine holds a Policy. A Policy is a release root (a signed
// document that names keys and what each may sign), single public keys, or
// both. The root in force moves along a chain: root N+1 is believed when a
// threshold of the root keys of N and a threshold of its own signed it, so a
// machine that slept through ten versions walks them one by one, and a link
// that is missing ends the walk. What is signed is a digest: an in-toto
// statement about it, in a DSSE envelope, in a sigstore bundle v0.3, which
// cosign verifies as well. Packages alone are signed for pacman, by OpenPGP;
// VerifyPackage takes a small part of what OpenPGP allows.
//
// It promises that Verify returns only keys that are trusted for the scope,
// are not revoked and made a valid ECDSA P-256 signature over exactly the
// statement that names the subject, or over exactly the package; that no clock
// (but the times handed to VerifyPackage), network or environment is consulted; and that equal inputs are signed with equal bytes when the key is
// in memory (RFC 6979). It does not keep anything: whoever holds the root in
// force across restarts records RootBytes and gives it to FromRoot again.
//
// Verification is the standard library's, and of OpenPGP go-crypto's, which is
// given only what was read strictly here. sigstore's own code and gpg are oracles
// in tests, never a part of a process that runs as root.
package trust
