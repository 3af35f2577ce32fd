package declaration

import (
	"strconv"
	"strings"

	"github.com/opencontainers/go-digest"
)

// validName is what may become part of a unit's name or a folder's: lower case
// letters, digits and dashes, as in a DNS label.
func validName(s string) bool {
	if len(s) > 63 || strings.HasPrefix(s, "-") || strings.HasSuffix(s, "-") {
		return false
	}
	for _, c := range s {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return s != ""
}

// validID holds the ids that people write and those the control plane makes
// of them ("MODULE/ID").
func validID(s string) bool {
	if len(s) > 200 {
		return false
	}
	for _, c := range s {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune("._-/", c) {
			return false
		}
	}
	return s != ""
}

func validDigest(d digest.Digest) bool {
	return d.Validate() == nil && d.Algorithm() == digest.SHA256
}

// checkAccount wants a user or group name as useradd(8) takes it, or a number
// that needs no account.
func checkAccount(o *object, name, s string) {
	if n, err := strconv.ParseUint(s, 10, 32); err == nil {
		if n >= 1<<32-1 || strconv.FormatUint(n, 10) != s {
			o.fault(name, "%q is not an account number", s)
		}
		return
	}
	ok := s != "" && len(s) <= 32
	for i, c := range s {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
		if !letter && (i == 0 || (c < '0' || c > '9') && c != '-' && c != '.' && !(c == '$' && i == len(s)-1)) {
			ok = false
		}
	}
	if !ok {
		o.fault(name, "%q is not an account", s)
	}
}
