package unit

import "context"

// A manager is what is asked of systemd. Everything else is files.
type manager interface {
	// look asks how a unit is. One that there is not is "not-found".
	look(ctx context.Context, unit string) (status, error)
	// fileState asks whether it is enabled, in the words of systemctl(1),
	// is-enabled, and reads the disk for it: what look could tell is what was so
	// when the unit was loaded. It is "" for a unit that has no file of its own.
	fileState(ctx context.Context, unit string) (string, error)

	// enable and disable make and remove links. They return the paths of those.
	enable(ctx context.Context, unit string, runtime bool) (links []string, err error)
	disable(ctx context.Context, unit string, runtime bool) (links []string, err error)
	// reload makes systemd read all files anew.
	reload(ctx context.Context) error
	// job runs a job to its end and returns its result.
	job(ctx context.Context, verb verb, unit string) (result string, err error)
	// resetFailed forgets that it failed, and how often it was started.
	resetFailed(ctx context.Context, unit string) error
}

// A verb is what a job does.
type verb string

const (
	start   verb = "start"
	stop    verb = "stop"
	restart verb = "restart"
	// reload is a restart for what cannot be reloaded.
	reload verb = "reload"
)
