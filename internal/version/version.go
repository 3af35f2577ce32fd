// Package version holds the version this binary was built as.
//
// It is set by the linker (`-X .../internal/version.version=1.0.0`); what a
// program reports with it is therefore always the version that runs.
package version

var version = "0.0.0-dev"

// Running returns the version of the running program, without a leading "v".
func Running() string { return version }
