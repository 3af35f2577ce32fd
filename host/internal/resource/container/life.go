package container

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"time"

	"github.com/nox-mesh/nox-mesh/host/declaration"
)

// healthy is how long a container must have been up for its last end to be
// forgotten, as for a process.
const healthy = time.Minute

// A life is how a container does, whatever it was made from.
type life struct {
	// difference says that it is not in the state its policy wants.
	difference string
	// failing says that it is, and does not do what it is for.
	failing, note string
}

// lifeOf judges by the restart policy. Who restarts is the runtime; the host
// starts what somebody stopped, or what a reboot left.
func (k *Kind) lifeOf(r *runtime, c *inspected, restart declaration.Restart) life {
	s := c.State
	ended := fmt.Sprintf("exited with %d", s.ExitCode)
	again := ended + ", restarted " + times(c.RestartCount)
	switch {
	case c.broken():
		return life{difference: "half removed"}
	case s.Paused:
		return life{difference: "paused"}
	case s.Restarting:
		return life{failing: again}
	case s.Running && r.near && gone(s.Pid):
		// Podman knows only by its monitor that a container ended; when both
		// were killed, it goes on calling it running.
		switch {
		case !attended(c.ID):
			return life{difference: "its process is gone"}
		case c.RestartCount > 0:
			return life{failing: "keeps ending: restarted " + times(c.RestartCount)}
		}
		return life{note: "it ended a moment ago"}
	case s.Running:
		if c.RestartCount > 0 && k.since(s.StartedAt) < healthy {
			return life{failing: "keeps ending: restarted " + times(c.RestartCount)}
		}
		return life{}
	case s.Status == "created" || s.Status == "configured" || s.Status == "initialized":
		return life{difference: "never started"}
	case restart == declaration.RestartNever && s.ExitCode != 0:
		return life{failing: ended}
	case restart == declaration.RestartNever, restart == declaration.RestartOnFailure && s.ExitCode == 0:
		return life{note: "ended"}
	case s.Status == "stopped" && c.RestartCount > 0 && k.since(s.FinishedAt) < healthy:
		return life{failing: again} // podman, between two starts
	}
	return life{difference: "not running, " + ended}
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return strconv.Itoa(n) + " times"
}

// since is how long ago a time of the runtime's was: the clock is the same one.
// What cannot be read was long ago, and so was what is yet to come, when the clock
// was set back: else it would go on being of a moment ago until then.
func (k *Kind) since(text string) time.Duration {
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || at.After(k.Clock.Now()) {
		return healthy
	}
	return k.Clock.Now().Sub(at)
}

// attended reports whether a process is there that will tell podman of the
// container's end: its monitor (conmon(8)), or the "podman container cleanup" that the
// monitor becomes. Both name the container in their arguments.
func attended(id string) bool {
	proc, err := os.Open("/proc")
	if err != nil {
		return false
	}
	defer proc.Close()
	names, _ := proc.Readdirnames(-1)
	for _, name := range names {
		if name[0] < '1' || name[0] > '9' {
			continue
		}
		// What ended meanwhile has no arguments.
		if args, _ := os.ReadFile("/proc/" + name + "/cmdline"); bytes.Contains(args, []byte(id)) {
			return true
		}
	}
	return false
}

// gone reports whether there is surely no process of that number.
func gone(pid int) bool {
	if pid <= 0 {
		return false
	}
	_, err := os.Stat("/proc/" + strconv.Itoa(pid))
	return errors.Is(err, fs.ErrNotExist)
}
