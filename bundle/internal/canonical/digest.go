package canonical

import (
	"strings"

	"github.com/opencontainers/go-digest"
)

// Digest reports whether d is spelled as we spell digests: "sha256:" and 64
// lower case hex digits. It is stricter than digest.Validate, which lets other
// algorithms pass; what passes here is safe as a file name.
func Digest(d digest.Digest) bool {
	hex, ok := strings.CutPrefix(string(d), "sha256:")
	return ok && Hex(hex)
}

// Hex reports whether s is a SHA-256 in lower case hex.
func Hex(s string) bool {
	return len(s) == 64 && strings.Trim(s, "0123456789abcdef") == ""
}
