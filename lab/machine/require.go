package machine

import (
	"os"
	"os/exec"
	"runtime"
	"strings"
)

// tools are the programs of this computer that a lab is made of.
var tools = []string{"systemd-nspawn", "mmdebstrap", "ip", "nsenter", "unshare", "mount", "sh"}

// Require skips the test, with the reason, where no machines can be had: they
// need root on Linux and a few programs. With NOX_REQUIRE_MACHINE=1 the test
// fails instead, so that a run that must have them cannot pass without.
func Require(t TB) {
	t.Helper()
	why := missing()
	if why == "" {
		return
	}
	if os.Getenv("NOX_REQUIRE_MACHINE") == "1" {
		t.Fatalf("no machines here: %s", why)
	}
	t.Skipf("no machines here: %s", why)
}

// missing says what there is not that a lab needs, or "".
func missing() string {
	if runtime.GOOS != "linux" {
		return "they need Linux"
	}
	if os.Geteuid() != 0 {
		return "they need root"
	}
	var lack []string
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err != nil {
			lack = append(lack, tool)
		}
	}
	if len(lack) > 0 {
		return "they need " + strings.Join(lack, ", ")
	}
	if _, _, err := hierarchies(); err != nil {
		return err.Error()
	}
	return ""
}
