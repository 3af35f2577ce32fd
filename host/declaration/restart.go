package declaration

// Restart says when a process or container that ended is started again.
type Restart string

// The restart policies.
const (
	RestartAlways    Restart = "always"
	RestartOnFailure Restart = "on-failure"
	RestartNever     Restart = "never"
)

var restartRule = words(RestartAlways, RestartOnFailure, RestartNever)
