package child

import (
	"strings"
	"testing"
	"time"
)

// P-07: who has no session of its own can ask at the terminal of the host's.
func TestP07AChildHasNoTerminal(t *testing.T) {
	const script = `read -r pid comm state parent group session rest </proc/self/stat; echo $$ "$session"; : </dev/tty`
	res, err := Run(t.Context(), Command{Path: "/bin/sh", Args: []string{"-c", script}, Timeout: 10 * time.Second})
	pid, session, _ := strings.Cut(strings.TrimSpace(string(res.Stdout)), " ")
	if pid == "" || pid != session {
		t.Errorf("process %q is in session %q", pid, session)
	}
	if err == nil || !strings.Contains(string(res.Stderr), "/dev/tty") {
		t.Errorf("it has a terminal: %v, %s", err, res.Stderr)
	}
}
