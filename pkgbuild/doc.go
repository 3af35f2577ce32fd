// Package pkgbuild is packaging as data: the files an installed host is made
// of, however it is packed, and the MANIFEST that describes a floor tarball.
//
// It promises that the floor and the packages lay down the same unit and the
// same default configuration, and that a MANIFEST has exactly one spelling:
// what ParseManifest accepts, Encode gives back byte by byte. It does not read
// or write a machine, and it verifies no signature: a Manifest is only as good
// as the check its bytes have been through (see the installer).
package pkgbuild
