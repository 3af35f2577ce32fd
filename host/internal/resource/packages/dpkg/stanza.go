package dpkg

import (
	"bytes"
	"iter"
	"strings"

	"github.com/nox-mesh/nox-mesh/host/internal/resource/packages/database"
)

// Bounds of what is read, in bytes. The status file of a machine with all of
// Debian has some 60 MiB.
const (
	maxStatus  = 128 << 20
	maxList    = 64 << 20
	maxControl = 1 << 20
)

// A stanza is one paragraph of deb-control(5): fields and their lines, by name.
type stanza struct{ fields map[string][]string }

func (s *stanza) get(field string) string {
	if v := s.fields[field]; len(v) > 0 {
		return v[0]
	}
	return ""
}

func parseStanza(b []byte) *stanza {
	s := &stanza{map[string][]string{}}
	field := ""
	for line := range strings.Lines(string(b)) {
		line = strings.TrimRight(line, "\n")
		if line == "" || line[0] == ' ' || line[0] == '\t' {
			if field != "" {
				s.fields[field] = append(s.fields[field], strings.TrimSpace(line))
			}
			continue
		}
		var value string
		field, value, _ = strings.Cut(line, ":")
		s.fields[field] = []string{strings.TrimSpace(value)}
	}
	return s
}

// stanzas are those of a package in a status file. Only these are parsed: the
// file is large, and read in each pass for each package.
func stanzas(b []byte, name string) iter.Seq[*stanza] {
	head := []byte("Package: " + name + "\n")
	return func(yield func(*stanza) bool) {
		for at := 0; ; {
			i := bytes.Index(b[at:], head)
			if i < 0 {
				return
			}
			i += at
			end := bytes.Index(b[i:], []byte("\n\n"))
			if end < 0 {
				end = len(b)
			} else {
				end += i + 1
			}
			at = end
			if i == 0 || b[i-1] == '\n' { // Package is the first field that dpkg writes
				if !yield(parseStanza(b[i:end])) {
					return
				}
			} else {
				at = i + len(head)
			}
		}
	}
}

// configs are the configuration files of the package. An obsolete one is no
// longer of it, and one that is to be removed on upgrade is gone soon.
func (s *stanza) configs() map[string]bool {
	out := map[string]bool{}
	for _, line := range s.fields["Conffiles"] {
		if words := strings.Fields(line); len(words) >= 2 {
			sum := len(words) - 1
			for sum > 1 && len(words[sum]) != 32 {
				sum--
			}
			out[database.Clean(strings.Join(words[:sum], " "))] = true
		}
	}
	return out
}
