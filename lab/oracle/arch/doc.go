// Package arch holds the packages for pacman against the real programs: makepkg
// packs the same input, pacman and repo-add of this computer take what we packed,
// and a machine with systemd installs it.
//
// It has no code but tests. They need root and the programs, and skip with the
// reason where these are missing; pacman works in a private root, and nothing
// outside the test's folders is touched. The machine test is built with the tag
// "machine".
package arch
