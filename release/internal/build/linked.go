package build

import (
	"debug/elf"
	"encoding/binary"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// maxLinked bounds a string that is looked at, in bytes.
const maxLinked = 256

var versionLike = regexp.MustCompile(`^[0-9]+(\.[0-9]+)+([-+].*)?$`)

// Version returns the version that was linked into a program, which is what it
// says that it is. The program is not run: it may be for another machine.
//
// With -trimpath the linker's flags are not in the build information, and with -s
// the variable's name is not in the file. But a string that -X sets is unlike any
// other: the linker writes its header (address and length) into the initialised
// data and its bytes, with a zero after them, into the read-only segment, where
// the compiler's own strings stand one after the other without
// (addstrdata in cmd/link/internal/ld/data.go). One of these must look like a
// version, and no other.
func Version(program *elf.File) (string, error) {
	linked, err := linkedStrings(program)
	if err != nil {
		return "", err
	}
	linked = slices.DeleteFunc(linked, func(s string) bool { return !versionLike.MatchString(s) })
	slices.Sort(linked)
	switch linked = slices.Compact(linked); len(linked) {
	case 1:
		return linked[0], nil
	case 0:
		return "", fault.Refusedf("no version is linked into it").Hint("build it with the flags of %s", ConfigName)
	}
	return "", fault.Refusedf("more than one version is linked into it: %s", strings.Join(linked, ", "))
}

// linkedStrings are the strings that the linker was told with -X.
func linkedStrings(program *elf.File) ([]string, error) {
	var constant, variable []segment
	for _, p := range program.Progs {
		if p.Type != elf.PT_LOAD || p.Flags&elf.PF_X != 0 {
			continue
		}
		// What the header says of its size may be anything.
		b, err := io.ReadAll(p.Open())
		if err != nil {
			return nil, err
		}
		if uint64(len(b)) != p.Filesz {
			return nil, fault.Refusedf("it is cut off")
		}
		if p.Flags&elf.PF_W != 0 {
			variable = append(variable, segment{p.Vaddr, b})
		} else {
			constant = append(constant, segment{p.Vaddr, b})
		}
	}
	var out []string
	for _, v := range variable {
		for b := v.content; len(b) >= 16; b = b[8:] {
			address, length := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
			if length == 0 || length > maxLinked {
				continue
			}
			for _, c := range constant {
				if s, ok := c.at(address, length+1); ok && strings.IndexByte(s, 0) == int(length) {
					out = append(out, s[:length])
				}
			}
		}
	}
	return out, nil
}

// A segment is a part of a program as it is in memory.
type segment struct {
	address uint64
	content []byte
}

func (s segment) at(address, length uint64) (string, bool) {
	size := uint64(len(s.content))
	if address < s.address || address-s.address > size || length > size-(address-s.address) {
		return "", false
	}
	from := address - s.address
	return string(s.content[from : from+length]), true
}
