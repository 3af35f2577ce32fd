package build

import (
	"debug/buildinfo"
	"debug/elf"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// baseline is what go compiles for when nobody asks for more, by GOARCH. A program
// that asks for more does not run on every machine.
var baseline = map[string][2]string{"amd64": {"GOAMD64", "v1"}, "arm64": {"GOARM64", "v8.0"}}

// Hold holds that the program called id was compiled for goarch with the flags
// that the file says, as far as a program shows it: by its build information, and
// by what the linker left out of it. The error names the setting.
//
// What -X linked in is for Version. DefaultGODEBUG follows from go.mod, not from
// a flag.
func (c Config) Hold(id, goarch string, program io.ReaderAt) error {
	t, err := c.target(id, goarch)
	if err != nil {
		return err
	}
	info, err := buildinfo.Read(program)
	if err != nil {
		return fault.Refusedf("it is no Go program: %w", err)
	}
	want, got := t.leaves(goarch), map[string]string{}
	for _, s := range info.Settings {
		got[s.Key] = s.Value
	}
	delete(got, "DefaultGODEBUG")
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if g, ok := got[key]; !ok {
			return differs("without %s=%s, which %s has", key, want[key], ConfigName)
		} else if g != want[key] {
			return differs("with %s=%s; %s means %s", key, g, ConfigName, want[key])
		}
	}
	for _, key := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[key]; !ok {
			return differs("with %s=%s, which %s does not have", key, got[key], ConfigName)
		}
	}
	e, err := elf.NewFile(program)
	if err != nil {
		return fault.Refusedf("it is no program for Linux: %w", err)
	}
	for _, f := range t.linkerFlags() {
		if section := leftOut[f]; section != "" && e.Section(section) != nil {
			return differs("without -ldflags=%s, which %s has", f, ConfigName)
		}
	}
	return nil
}

func differs(format string, args ...any) error {
	return fault.Refusedf("it was compiled "+format, args...).Hint("build it with the flags of %s", ConfigName)
}

// leftOut are the sections that a flag of the linker leaves out.
var leftOut = map[string]string{"-s": ".symtab", "-w": ".debug_info", "-buildid=": ".note.go.buildid"}

func (t Target) linkerFlags() []string { return strings.Fields(strings.Join(t.LDFlags, " ")) }

// leaves is the build information that a build by t leaves in its program. A
// setting that leaves none is one that this package does not understand, and Hold
// finds it missing.
func (t Target) leaves(goarch string) map[string]string {
	m := map[string]string{"-buildmode": "exe", "-compiler": "gc", "GOOS": "linux", "GOARCH": goarch}
	m[baseline[goarch][0]] = baseline[goarch][1]
	for _, e := range t.Env {
		key, value, _ := strings.Cut(e, "=")
		m[key] = value
	}
	for _, f := range t.Flags {
		key, value, valued := strings.Cut(f, "=")
		if !valued {
			value = "true"
		}
		m[key] = value
	}
	// Without it there would be vcs settings.
	if m["-buildvcs"] == "false" {
		delete(m, "-buildvcs")
	}
	// Go writes them down only where paths may be written down as well
	// (https://go.dev/issue/52372).
	if m["-trimpath"] != "true" && len(t.LDFlags) > 0 {
		m["-ldflags"] = strings.Join(t.LDFlags, " ")
	}
	return m
}
