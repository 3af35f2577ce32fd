package image

import (
	"path/filepath"
	"strings"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// The transports, named as containers-transports(5) names them.
const (
	transportLayout        = "oci"
	transportArchive       = "oci-archive"
	transportDockerArchive = "docker-archive"
	transportDocker        = "docker"
)

// Forms says how a Reference is written, for people.
const Forms = "oci:DIR[:TAG], oci-archive:FILE[:TAG], docker-archive:FILE[:NAME:TAG] or docker://REGISTRY/NAME@sha256:…"

// A Reference says where an image is. It is written as skopeo and podman write it:
//
//	oci:DIR[:TAG]                       a directory that is an OCI image layout
//	oci-archive:FILE[:TAG]              a tar of one
//	docker-archive:FILE[:NAME:TAG]      what "podman save" and "docker save" write
//	docker://REGISTRY/NAME@sha256:…     an image in a registry
//
// TAG may be left out where there is one image only. The first three may end in
// "@sha256:…", which is then the digest that the image must have; in a registry it
// is that of the image or of the index the image is in, and must be there: a tag
// is another image tomorrow.
type Reference struct {
	transport string
	// path is that of the file or directory, or REGISTRY/NAME.
	path, tag string
	digest    digest.Digest
}

// Parse reads a reference.
func Parse(s string) (Reference, error) {
	bad := func(format string, args ...any) (Reference, error) {
		return Reference{}, fault.Refusedf("%.512q names no image: "+format, append([]any{s}, args...)...).Hint("write %s", Forms)
	}
	transport, rest, ok := strings.Cut(s, ":")
	if !ok {
		return bad("it says not where it is")
	}
	r := Reference{transport: transport}
	if i := strings.LastIndex(rest, "@"); i >= 0 {
		r.digest = digest.Digest(rest[i+1:])
		if r.digest.Validate() != nil || r.digest.Algorithm() != digest.SHA256 {
			return bad("%.80q is no SHA-256 digest", rest[i+1:])
		}
		rest = rest[:i]
	}
	switch transport {
	case transportLayout, transportArchive, transportDockerArchive:
		r.path, r.tag, _ = strings.Cut(rest, ":")
		if r.path == "" {
			return bad("it says no path")
		}
		return r, nil
	case transportDocker:
		rest, ok = strings.CutPrefix(rest, "//")
		if !ok {
			return bad("\"//\" must follow \"docker:\"")
		}
		if r.digest == "" {
			return bad("without its digest it would be another image tomorrow")
		}
		r.path = rest
		if i := strings.LastIndex(rest, ":"); i > strings.LastIndex(rest, "/") {
			r.path, r.tag = rest[:i], rest[i+1:]
		}
		host, name, ok := strings.Cut(r.path, "/")
		if !ok || !strings.ContainsAny(host, ".:") && host != "localhost" {
			return bad("it says no registry, as in \"docker.io/library/%.80s\"", r.path)
		}
		if host == "docker.io" && !strings.Contains(name, "/") {
			r.path = host + "/library/" + name
		}
		return r, nil
	}
	return bad("%.80q is not read here", transport+":")
}

// In returns the reference with a relative path taken to be one in dir.
func (r Reference) In(dir string) Reference {
	if r.transport != transportDocker && !filepath.IsAbs(r.path) {
		r.path = filepath.Join(dir, r.path)
	}
	return r
}

// File returns the path of the archive, or "" where the image is in no one file.
func (r Reference) File() string {
	if r.transport == transportArchive || r.transport == transportDockerArchive {
		return r.path
	}
	return ""
}

func (r Reference) String() string {
	s := r.transport + ":"
	if r.transport == transportDocker {
		s += "//"
	}
	s += r.path
	if r.tag != "" {
		s += ":" + r.tag
	}
	if r.digest != "" {
		s += "@" + string(r.digest)
	}
	return s
}
