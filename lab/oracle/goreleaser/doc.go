// Package goreleaser holds the release that GoReleaser makes against the one that
// mesh-release makes of the same source: the same bytes in every file.
//
// It has no code but tests. They need GoReleaser, which lab/tools.sh builds, and
// git; everything happens in a copy of the source in the test's folder.
package goreleaser
