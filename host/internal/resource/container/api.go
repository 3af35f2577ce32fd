package container

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// idPattern is what both runtimes call a container.
var idPattern = regexp.MustCompile(`^[0-9a-f]{64}$`)

// stopTime is how long a container may take to end after it was asked to, in
// seconds: docker's own.
const stopTime = 10

// An inspected is what a runtime says of one container; of all it says, what is
// needed here.
type inspected struct {
	ID           string `json:"Id"`
	Name         string
	Image        string
	RestartCount int
	State        struct {
		Status           string
		Running, Paused  bool
		Restarting, Dead bool
		Pid, ExitCode    int
		StartedAt, Error string
		FinishedAt       string
	}
	Config struct {
		Env, Cmd, Entrypoint []string
		User                 string
		Labels               map[string]string
	}
	HostConfig struct {
		NetworkMode   string
		RestartPolicy restartPolicy
		PortBindings  map[string][]binding
		Tmpfs         map[string]string
		Memory        int64
		NanoCpus      int64
		PidsLimit     *int64
	}
	Mounts []struct {
		Type, Name, Source, Destination string
		RW                              bool
	}
	NetworkSettings struct {
		Networks map[string]json.RawMessage
	}
}

// madeFor reports whether this host made it for a container of that name.
func (c *inspected) madeFor(name string) bool { return c.Config.Labels[labelName] == name }

// broken reports whether a removal of it began and did not end.
func (c *inspected) broken() bool { return c.State.Dead || c.State.Status == "removing" }

// A listed is a container in a list.
type listed struct {
	ID      string `json:"Id"`
	Names   []string
	ImageID string
}

func (l listed) name() string {
	if len(l.Names) == 0 {
		return l.ID[:12]
	}
	return strings.TrimPrefix(l.Names[0], "/")
}

// inspect returns the container of exactly that name, nil when there is none: a
// runtime takes the beginning of an ID for a name too.
func (r *runtime) inspect(ctx context.Context, name string) (*inspected, error) {
	c, err := r.inspectAny(ctx, name)
	if c == nil || err != nil || c.Name != "/"+name {
		return nil, err
	}
	return c, nil
}

func (r *runtime) inspectAny(ctx context.Context, nameOrID string) (*inspected, error) {
	var c inspected
	ok, err := r.get(ctx, "/containers/"+url.PathEscape(nameOrID)+"/json", nil, &c)
	switch {
	case !ok:
		return nil, err
	case !idPattern.MatchString(c.ID) || !strings.HasPrefix(c.Name, "/"):
		return nil, fmt.Errorf("the container runtime says of container %q that it is %q, called %q", nameOrID, line(c.ID), line(c.Name))
	}
	return &c, nil
}

// list returns the containers with a label ("NAME=VALUE"), or all for "", in
// whatever state.
func (r *runtime) list(ctx context.Context, label string) ([]listed, error) {
	query := url.Values{"all": {"1"}}
	if label != "" {
		b, err := json.Marshal(map[string][]string{"label": {label}})
		if err != nil {
			return nil, err
		}
		query.Set("filters", string(b))
	}
	var out []listed
	if _, err := r.get(ctx, "/containers/json", query, &out); err != nil {
		return nil, err
	}
	for _, l := range out {
		if !idPattern.MatchString(l.ID) {
			return nil, fmt.Errorf("the container runtime lists a container %q", line(l.ID))
		}
	}
	return out, nil
}

func (r *runtime) create(ctx context.Context, name string, b body) (string, error) {
	var made struct {
		ID string `json:"Id"`
	}
	if err := r.post(ctx, "/containers/create", url.Values{"name": {name}}, b, &made); err != nil {
		return "", err
	}
	if !idPattern.MatchString(made.ID) {
		return "", fmt.Errorf("the container runtime says that it made %q", line(made.ID))
	}
	return made.ID, nil
}

func (r *runtime) start(ctx context.Context, id string) error {
	return r.tell(ctx, id, "start", nil)
}

func (r *runtime) stop(ctx context.Context, id string) error {
	return r.tell(ctx, id, "stop", url.Values{"t": {strconv.Itoa(stopTime)}})
}

func (r *runtime) restart(ctx context.Context, id string) error {
	return r.tell(ctx, id, "restart", url.Values{"t": {strconv.Itoa(stopTime)}})
}

func (r *runtime) unpause(ctx context.Context, id string) error {
	return r.tell(ctx, id, "unpause", nil)
}

func (r *runtime) rename(ctx context.Context, id, name string) error {
	return r.tell(ctx, id, "rename", url.Values{"name": {name}})
}

func (r *runtime) tell(ctx context.Context, id, verb string, query url.Values) error {
	return r.post(ctx, "/containers/"+id+"/"+verb, query, nil, nil)
}

// setRestart sets the policy of a container that is stopped for long. A runtime
// that cannot (podman before 4.9) may start it after a reboot: Check sees that.
func (r *runtime) setRestart(ctx context.Context, id, policy string) error {
	err := r.post(ctx, "/containers/"+id+"/update", nil, map[string]any{"RestartPolicy": restartPolicy{policy}}, nil)
	if isRefusal(err) {
		return nil
	}
	return err
}

// await waits until the container does not run, or ctx ends: that is no error.
func (r *runtime) await(ctx context.Context, id string) error {
	err := r.post(ctx, "/containers/"+id+"/wait", url.Values{"condition": {"not-running"}}, nil, nil)
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// remove takes a container away, running or not, with the volumes that have no
// name: nobody could find them again.
func (r *runtime) remove(ctx context.Context, id string) error {
	err := r.delete(ctx, "/containers/"+id, url.Values{"force": {"1"}, "v": {"1"}})
	if isStatus(err, http.StatusConflict) {
		// "Removal is already in progress": whoever began it ends it.
		return r.awaitRemoved(ctx, id, err)
	}
	return err
}

func (r *runtime) awaitRemoved(ctx context.Context, id string, conflict error) error {
	err := r.post(ctx, "/containers/"+id+"/wait", url.Values{"condition": {"removed"}}, nil, nil)
	if err != nil && !isStatus(err, http.StatusNotFound) {
		return conflict
	}
	return nil
}
