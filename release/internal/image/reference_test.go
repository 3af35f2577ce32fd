package image

import (
	"strings"
	"testing"
)

const someDigest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func TestReferencesAreThoseOfOthers(t *testing.T) {
	for text, want := range map[string]string{
		"oci:web":                                     "oci:web",
		"oci:web:v1":                                  "oci:web:v1",
		"oci:/srv/web:example.test/web:v1":            "oci:/srv/web:example.test/web:v1",
		"oci-archive:web.tar:v1@" + someDigest:        "oci-archive:web.tar:v1@" + someDigest,
		"docker-archive:a.tar:example.test/web:1":     "docker-archive:a.tar:example.test/web:1",
		"docker://example.test/a/web@" + someDigest:   "docker://example.test/a/web@" + someDigest,
		"docker://localhost:5000/web:1@" + someDigest: "docker://localhost:5000/web:1@" + someDigest,
		"docker://[::1]:5000/web@" + someDigest:       "docker://[::1]:5000/web@" + someDigest,
		"docker://docker.io/alpine:3@" + someDigest:   "docker://docker.io/library/alpine:3@" + someDigest,
	} {
		r, err := Parse(text)
		if err != nil || r.String() != want {
			t.Errorf("%q is read as %q, %v", text, r, err)
		}
	}
}

func TestReferencesThatAreNone(t *testing.T) {
	for text, want := range map[string]string{
		"web.tar":           "says not where",
		"oci:":              "says no path",
		"oci-archive::v1":   "says no path",
		"oci:web@sha256:12": "no SHA-256 digest",
		"oci:web@sha512:" + strings.Repeat("0", 128): "no SHA-256 digest",
		"dir:web":                          `"dir:" is not read here`,
		"containers-storage:web":           `"containers-storage:" is not read here`,
		"docker:example.test/web":          `"//" must follow`,
		"docker://example.test/web:1":      "another image tomorrow",
		"docker://alpine@" + someDigest:    "says no registry",
		"docker://library/a@" + someDigest: "says no registry",
	} {
		_, err := Parse(text)
		refused(t, err, want)
	}
}

func TestOnlyPathsAreRelative(t *testing.T) {
	for text, want := range map[string]string{
		"oci:web:v1":           "oci:/recipe/web:v1",
		"oci:../web":           "oci:/web",
		"oci:/srv/web":         "oci:/srv/web",
		"docker-archive:a.tar": "docker-archive:/recipe/a.tar",
		"docker://example.test/web@" + someDigest: "docker://example.test/web@" + someDigest,
	} {
		r, err := Parse(text)
		if got := r.In("/recipe").String(); err != nil || got != want {
			t.Errorf("%q is %q, want %q (%v)", text, got, want, err)
		}
	}
}
