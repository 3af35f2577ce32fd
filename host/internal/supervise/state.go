package supervise

import "time"

// A Phase is a state of the machine in the package's comment.
type Phase string

// The phases.
const (
	// Starting: it was started and has not lived long enough to be believed.
	Starting Phase = "starting"
	// Running: it lives.
	Running Phase = "running"
	// Clearing: it ended, and what it left behind is being killed.
	Clearing Phase = "clearing"
	// Backoff: it ended and is started again after a while.
	Backoff Phase = "backoff"
	// Exited: it ended, and by its policy that is it.
	Exited Phase = "exited"
	// Halted: it failed too often, or its definition cannot be read.
	Halted Phase = "halted"
	// Stopping: it was asked to end.
	Stopping Phase = "stopping"
	// Killing: it did not end when it was asked.
	Killing Phase = "killing"
	// Stopped: it ended because the shim was told to.
	Stopped Phase = "stopped"
)

// A Proc is one process, for ever: a PID alone is soon somebody else's.
type Proc struct {
	PID int `json:"pid"`
	// Start is when it started, in ticks since boot: field 22 of
	// /proc/PID/stat (proc_pid_stat(5)).
	Start uint64 `json:"start"`
	// Boot is /proc/sys/kernel/random/boot_id.
	Boot string `json:"boot"`
}

// A State is what a shim says of its process.
type State struct {
	// Sequence grows with each state that is written to the file.
	Sequence uint64 `json:"sequence"`
	Shim     Proc   `json:"shim"`
	Child    *Proc  `json:"child,omitempty"`
	Phase    Phase  `json:"phase"`
	// Failures in a row.
	Failures int `json:"failures"`
	// Short is how often in a row it ended, failed or not, before it had lived for
	// the healthy minute. A shim of before it was counted leaves it out.
	Short int `json:"short,omitempty"`
	// LastExit says how it ended last ("exited with 1"), or why it could not
	// be started.
	LastExit string `json:"last_exit,omitempty"`
	// Since is when the phase began, for people.
	Since time.Time `json:"since"`
	// Definition is the Digest of the definition the shim runs.
	Definition string `json:"definition"`
	// Completed is the Digest of the definition that ran to completion, for a
	// process that runs once.
	Completed string `json:"completed,omitempty"`
}
