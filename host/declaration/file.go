package declaration

import (
	"path"
	"strconv"
	"strings"

	"github.com/opencontainers/go-digest"
)

func parseFile(o *object) *File {
	f := &File{
		Path:   o.need("path"),
		Owner:  o.text("owner", "root"),
		Group:  o.text("group", "root"),
		Secret: o.flag("secret"),
	}
	if f.Path != "" {
		checkPath(o, "path", f.Path)
	}
	checkAccount(o, "owner", f.Owner)
	checkAccount(o, "group", f.Group)

	given := 0
	for _, name := range []string{"content", "source", "target", "directory"} {
		if o.has(name) {
			given++
		}
	}
	if given != 1 {
		o.faults.add(o.path, "needs exactly one of content, source, target, directory")
	}
	f.Mode = 0o644
	if f.Secret {
		f.Mode = 0o600
	}
	if o.has("content") {
		c := o.text("content", "")
		f.Content = &c
	}
	if s := o.text("source", ""); s != "" {
		f.Source = digest.Digest(s)
		if !validDigest(f.Source) {
			o.fault("source", "%q is not a sha256 digest", s)
		}
	} else if o.has("source") {
		o.fault("source", "is empty")
	}
	if f.Target = o.text("target", ""); o.has("target") {
		if f.Target == "" || strings.ContainsRune(f.Target, 0) || len(f.Target) > 4095 {
			o.fault("target", "%q cannot be the target of a symlink", f.Target)
		}
		if o.has("mode") {
			o.fault("mode", "has no meaning for a symlink")
		}
		f.Mode = 0o777
	}
	if o.has("directory") {
		if f.Directory = o.flag("directory"); !f.Directory {
			o.fault("directory", "can only be true")
		}
		f.Mode = 0o755
	}
	if m := o.text("mode", ""); o.has("mode") {
		n, err := strconv.ParseUint(m, 8, 32)
		if err != nil || n > 0o7777 || len(m) < 3 {
			o.fault("mode", "%q is not an octal file mode", m)
		}
		f.Mode = uint32(n)
	}
	if f.Secret && f.Content == nil {
		o.fault("secret", "is for content only")
	}
	return f
}

// checkPath wants the one spelling of an absolute path, so that two resources
// about one file cannot differ in spelling.
func checkPath(o *object, name, p string) {
	switch {
	case !strings.HasPrefix(p, "/"):
		o.fault(name, "%q is not absolute", p)
	case path.Clean(p) != p:
		o.fault(name, "%q is not clean (want %q)", p, path.Clean(p))
	case p == "/":
		o.fault(name, "is the root directory")
	case strings.ContainsRune(p, 0):
		o.fault(name, "holds a NUL byte")
	case len(p) > 4000 || hasLongComponent(p):
		o.fault(name, "is longer than the kernel takes")
	}
}

func hasLongComponent(p string) bool {
	for c := range strings.SplitSeq(p, "/") {
		if len(c) > 255 {
			return true
		}
	}
	return false
}
