package pkgbuild

import (
	_ "embed"
	"strconv"
	"strings"
)

// LauncherPath is where the launcher copy of the host lies on a machine.
const LauncherPath = "/var/lib/nox-mesh/launcher/mesh-host"

// HaltStatus is the exit status by which the launcher says that no binary it
// has can live; systemd then does not start the unit again. It is none of
// sysexits.h, the shell's or systemd's own, and nothing but the launcher may
// end with it: RestartPreventExitStatus looks at the number only.
const HaltStatus = 179

//go:embed mesh-host.service
var unitTemplate string

//go:embed host.toml
var hostConfig []byte

// HostConfig returns the default /etc/nox-mesh/host.toml: comments only.
func HostConfig() []byte { return append([]byte(nil), hostConfig...) }

// HostUnit returns mesh-host.service for the host at the absolute path binary.
func HostUnit(binary string) []byte {
	return []byte(strings.NewReplacer(
		"@LAUNCHER@", LauncherPath,
		"@BINARY@", unitArgument(binary),
		"@HALT@", strconv.Itoa(HaltStatus),
	).Replace(unitTemplate))
}

// unitArgument spells s so that systemd passes exactly s: quotes as in
// systemd.syntax(7), specifiers and variables as in systemd.service(5).
func unitArgument(s string) string {
	plain := strings.IndexFunc(s, func(r rune) bool {
		return !strings.ContainsRune("/._-+@", r) &&
			(r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	}) < 0
	if plain {
		return s
	}
	return `"` + strings.NewReplacer(
		`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`, "%", "%%", "$", "$$",
	).Replace(s) + `"`
}
