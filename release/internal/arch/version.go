package arch

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/goreleaser/nfpm/v2"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// A Version is what pacman orders packages by, vercmp(8).
type Version struct {
	Epoch uint64 // 0 is none
	Ver   string // pkgver
	Rel   string // pkgrel: "1" or "1.1"
}

// String returns "EPOCH:VER-REL", or "VER-REL" without an epoch.
func (v Version) String() string {
	s := v.Ver + "-" + v.Rel
	if v.Epoch > 0 {
		s = strconv.FormatUint(v.Epoch, 10) + ":" + s
	}
	return s
}

// A pkgver is ASCII without any of ":/-<>=" and space, PKGBUILD(5); what a shell
// or an URL would stumble over is left out as well.
var (
	verPattern = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z._+~^]*$`)
	relPattern = regexp.MustCompile(`^[0-9]{1,9}(\.[0-9]{1,9})?$`)
	// A pre-release is one word with at most one number: without its dots
	// "rc.1.2" would be "rc.12", and one that starts with a digit a later release.
	prePattern = regexp.MustCompile(`^([A-Za-z]+)\.?(0|[1-9][0-9]*)?$`)
)

const maxVersion = 64

// PkgVer returns the pkgver of a release version: "1.0.0-rc.1" is "1.0.0rc1",
// which vercmp(8) sorts before "1.0.0" and after "1.0.0beta2".
func PkgVer(release string) (string, error) {
	base, pre, has := strings.Cut(release, "-")
	if has {
		m := prePattern.FindStringSubmatch(pre)
		// What ends in a letter could not be told from it: "1.0a" and "1.0-a".
		if m == nil || strings.HasSuffix(pre, ".") || !endsInDigit(base) {
			return "", fault.Usagef("cannot make a pkgver of version %q: its pre-release is not a word and a number", release).
				Hint("name it as in 1.0.0-rc.1")
		}
		base += m[1] + m[2]
	}
	if len(base) > maxVersion || !verPattern.MatchString(base) {
		return "", fault.Usagef("cannot make a pkgver of version %.80q: it is not letters, digits and \"._+~^\"", release)
	}
	return base, nil
}

func endsInDigit(s string) bool {
	return s != "" && s[len(s)-1] >= '0' && s[len(s)-1] <= '9'
}

// ParseVersion reads what Version.String writes, and no other spelling.
func ParseVersion(s string) (Version, error) {
	bad := func() (Version, error) {
		return Version{}, fault.Refusedf("%.80q is not a version of a package: [EPOCH:]VER-REL", s)
	}
	var v Version
	rest := s
	if e, after, ok := strings.Cut(s, ":"); ok {
		n, err := strconv.ParseUint(e, 10, 31)
		if err != nil || n == 0 {
			return bad()
		}
		v.Epoch, rest = n, after
	}
	var ok bool
	v.Ver, v.Rel, ok = strings.Cut(rest, "-")
	if !ok || len(v.Ver) > maxVersion || !verPattern.MatchString(v.Ver) || !relPattern.MatchString(v.Rel) || v.String() != s {
		return bad()
	}
	return v, nil
}

// VersionOf returns the version of a package in nfpm's model. An empty release
// is 1.
func VersionOf(info *nfpm.Info) (Version, error) {
	release := info.Version
	if info.Prerelease != "" {
		release += "-" + info.Prerelease
	}
	if info.VersionMetadata != "" {
		return Version{}, fault.Usagef("cannot pack %q: pacman has no place for the version's metadata %q", info.Name, info.VersionMetadata)
	}
	ver, err := PkgVer(release)
	if err != nil {
		return Version{}, err
	}
	v := Version{Ver: ver, Rel: info.Release}
	if v.Rel == "" {
		v.Rel = "1"
	}
	if info.Epoch != "" {
		if v.Epoch, err = strconv.ParseUint(info.Epoch, 10, 31); err != nil {
			return Version{}, fault.Usagef("cannot pack %q: the epoch %.80q is not a number", info.Name, info.Epoch)
		}
	}
	if !relPattern.MatchString(v.Rel) {
		return Version{}, fault.Usagef("cannot pack %q: the release %.80q is not N or N.N", info.Name, v.Rel)
	}
	return v, nil
}
