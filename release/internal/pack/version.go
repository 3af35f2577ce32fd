package pack

import (
	"regexp"

	"github.com/goreleaser/nfpm/v2"

	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/release/internal/arch"
	"github.com/nox-mesh/nox-mesh/release/internal/check"
)

var versionPattern = regexp.MustCompile(`^(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(-[0-9A-Za-z]+(\.[0-9A-Za-z]+)*)?$`)

// CheckVersion holds the grammar of versions: what every artefact can be named
// with, and sorts alike. That is semver without build metadata, and with a word and
// a number for a pre-release, as pacman orders them.
func CheckVersion(version string) error {
	if !versionPattern.MatchString(version) || len(version) > 64 {
		return fault.Usagef("cannot build: %.80q is not a version", version).Hint("give --version 1.0.0 or 1.0.0-rc.1, without a \"v\"")
	}
	_, err := arch.VersionOf(&nfpm.Info{Version: version, Release: "1"})
	return err
}

// CheckCounter holds that a counter can be the time of a file.
func CheckCounter(counter uint64) error {
	if counter > check.MaxCounter {
		return fault.Usagef("cannot build: the counter %d is above %d", counter, uint64(check.MaxCounter))
	}
	return nil
}
