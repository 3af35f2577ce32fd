package pkgbuild

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestHostUnitStartsTheLauncher(t *testing.T) {
	unit := string(HostUnit("/usr/local/bin/mesh-host"))
	for _, line := range []string{
		"ExecStart=/var/lib/nox-mesh/launcher/mesh-host launch /usr/local/bin/mesh-host",
		"ExecReload=/var/lib/nox-mesh/launcher/mesh-host reload $MAINPID",
		"Type=notify", "Restart=always", "RestartPreventExitStatus=179", "WatchdogSec=30",
		"TimeoutStartSec=30", "TimeoutStartFailureMode=kill", "TimeoutStopSec=30",
		"RestartSec=100ms", "StartLimitIntervalSec=0", "LimitCORE=0", "WantedBy=multi-user.target",
	} {
		if !strings.Contains(unit, "\n"+line+"\n") {
			t.Errorf("no line %q", line)
		}
	}
	if strings.Contains(unit, "@") {
		t.Errorf("a placeholder is left:\n%s", unit)
	}
}

func TestHostUnitQuotesTheBinary(t *testing.T) {
	for in, want := range map[string]string{
		"/opt/nox mesh/bin/mesh-host": `launch "/opt/nox mesh/bin/mesh-host"`,
		"/opt/100%/$HOME/m":           `launch "/opt/100%%/$$HOME/m"`,
		`/opt/a"b\c`:                  `launch "/opt/a\"b\\c"`,
	} {
		if unit := string(HostUnit(in)); !strings.Contains(unit, want+"\n") {
			t.Errorf("%q: no %s in\n%s", in, want, unit)
		}
	}
}

func TestSystemdAcceptsTheUnit(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not here")
	}
	unit := filepath.Join(t.TempDir(), "mesh-host.service")
	// The programs need not be here; "true" is, everywhere.
	text := strings.ReplaceAll(string(HostUnit("/usr/bin/true")), LauncherPath, "/usr/bin/true")
	write(t, unit, text)
	out, err := exec.Command(analyze, "verify", "--man=no", unit).CombinedOutput()
	if err != nil || strings.Contains(string(out), "mesh-host.service") {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
