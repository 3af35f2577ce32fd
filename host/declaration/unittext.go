package declaration

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/nox-mesh/nox-mesh/internal/layout"
)

// unitTypes end the names of units (systemd.unit(5)).
var (
	unitTypes = []string{".service", ".socket", ".device", ".mount", ".automount", ".swap", ".target", ".path", ".timer", ".slice", ".scope"}
	// starting are the types of a service and of what may start it.
	starting = []string{".service", ".socket", ".path", ".timer"}
)

// ownUnit reports whether a name in a directory of systemd's is about the
// host's unit: the unit, one that starts it (a socket, timer or path of its
// name), an instance, what hangs on it (.d, .wants, .requires), or the drop-ins
// that systemd reads for it by a shorter name: "mesh-.service.d", "service.d".
func ownUnit(name string) bool {
	if name == "service.d" {
		return true
	}
	stem, _, _ := strings.Cut(name, ".")
	prefix, _, _ := strings.Cut(layout.HostName, "-")
	return stem == layout.HostName || stem == prefix+"-" || strings.HasPrefix(stem, layout.HostName+"@")
}

// UnitText reports whether systemd reads a file of that name in its
// directories: a unit or a drop-in.
func UnitText(name string) bool {
	return path.Ext(name) == ".conf" || slices.Contains(unitTypes, path.Ext(name))
}

// relations are the settings that name other units (systemd.unit(5)).
var relations = []string{
	"Alias", "Also", "WantedBy", "RequiredBy", "UpheldBy", "Wants", "Requires", "Requisite", "BindsTo", "PartOf", "Upholds",
	"Conflicts", "Before", "After", "OnFailure", "OnSuccess", "PropagatesReloadTo", "ReloadPropagatedFrom",
	"PropagatesStopTo", "StopPropagatedFrom", "JoinsNamespaceOf", "Unit", "Service", "Sockets", "Slice", "BindTo", "PropagateReloadTo",
	"PropagateReloadFrom", "RequiresOverridable", "RequisiteOverridable",
}

// OwnInUnit says how the text of a unit or a drop-in names the host's unit, or
// why that cannot be told; "" when it does not. A specifier (%p, %i …) stands
// for anything.
func OwnInUnit(text string) string {
	if strings.ContainsRune(text, 0) {
		return "holds a NUL byte, which no unit needs and at which systemd ends a line"
	}
	if strings.Contains(text, layout.HostUnit) {
		return fmt.Sprintf("names %q, %s", layout.HostUnit, notYours)
	}
	for line := range strings.SplitSeq(joined(text), "\n") {
		// Old versions of systemd read another file there, which lies anywhere.
		if strings.HasPrefix(strings.Trim(line, blank), ".include") {
			return "includes another file, which only old versions of systemd do"
		}
		key, value, ok := strings.Cut(line, "=")
		if key = strings.Trim(key, blank); !ok || !slices.Contains(relations, key) {
			continue
		}
		for _, word := range strings.FieldsFunc(plain.Replace(value), func(r rune) bool { return strings.ContainsRune(blank, r) }) {
			if mayBeHost(word) {
				return fmt.Sprintf("%s=%s can be %q, %s", key, word, layout.HostUnit, notYours)
			}
		}
	}
	return ""
}

// plain takes away what a value may be written with (systemd.syntax(7)).
var plain = strings.NewReplacer(`"`, "", `'`, "", `\x2d`, "-", `\x2D`, "-", `\x40`, "@", `\`, "")

// blank is what systemd trims and splits by: no vertical tab, no form feed, and
// nothing that only Unicode calls a space.
const blank = " \t\r\n"

// lineEnds are what systemd ends a line at: either of the two, or one of each.
var lineEnds = strings.NewReplacer("\r\n", "\n", "\n\r", "\n", "\r", "\n")

// joined puts the lines together that a backslash continues, unless that is
// escaped by another; comments in between do not end it (systemd.syntax(7)).
func joined(text string) string {
	var b strings.Builder
	going := false
	for line := range strings.SplitSeq(lineEnds.Replace(text), "\n") {
		if t := strings.TrimLeft(line, blank); strings.HasPrefix(t, "#") || strings.HasPrefix(t, ";") {
			continue
		}
		line = strings.TrimPrefix(line, "\ufeff") // a byte order mark, wherever the first one is
		if !going {
			b.WriteByte('\n')
		}
		if going = (len(line)-len(strings.TrimRight(line, `\`)))%2 == 1; going {
			line = line[:len(line)-1] + " "
		}
		b.WriteString(line)
	}
	return b.String()
}

// mayBeHost reports whether the name of a unit is the host's or an instance of
// it, for some value of its specifiers. No device, mount or target whose name
// has a specifier in it ("dev-%i.device", "%i.target") is.
func mayBeHost(word string) bool {
	if strings.Contains(word, "%") && slices.Contains(unitTypes, path.Ext(word)) && !slices.Contains(starting, path.Ext(word)) {
		return false
	}
	var stem strings.Builder
	for i := 0; i < len(word); i++ {
		switch c := word[i]; {
		case c == '.' || c == '@':
			i = len(word)
		case c == '%' && i+1 < len(word):
			stem.WriteByte('*')
			i++
		case strings.IndexByte(`*?[\`, c) >= 0: // no unit has it in its name
			return false
		default:
			stem.WriteByte(c)
		}
	}
	ok, _ := path.Match(stem.String(), layout.HostName)
	return ok
}
