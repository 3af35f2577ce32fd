package container

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/host/internal/resource"
	"github.com/nox-mesh/nox-mesh/internal/durable"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// What else a container is called while it is being replaced, and after.
const (
	suffixNext   = ".nox-next"
	suffixLast   = ".nox-last"
	suffixBefore = ".nox-before"
)

// A job is one Apply.
type job struct {
	*runtime
	k    *Kind
	name string
	def  definition
	want resource.Want
	// owned: the host's store knows it. before is what was somebody's then.
	owned  bool
	before *other
}

// Apply implements resource.Kind.
func (k *Kind) Apply(ctx context.Context, want resource.Want, prior *resource.Record, _ resource.State) error {
	name := want.Resource.Container.Name
	if err := k.apply(ctx, want, prior); err != nil {
		return fmt.Errorf("cannot apply container %q: %w", name, err)
	}
	return nil
}

func (k *Kind) apply(ctx context.Context, want resource.Want, prior *resource.Record) error {
	c := want.Resource.Container
	if err := k.review(c); err != nil {
		return err
	}
	if err := k.sources(c); err != nil {
		return err
	}
	if err := durable.MkdirAll(k.cover(), 0o555); err != nil {
		return err
	}
	def, err := k.definition(c)
	if err != nil {
		return err
	}
	was, err := before(prior)
	if err != nil {
		return err
	}
	r, err := k.runtime(ctx, c.Name)
	if err != nil {
		return err
	}
	j := &job{runtime: r, k: k, name: c.Name, def: def, want: want, owned: prior != nil, before: was}
	if err := j.run(ctx); err != nil {
		return def.silence(err)
	}
	// What could not be pruned is, the next time something changes.
	_ = k.prune(ctx, r)
	return nil
}

func (j *job) run(ctx context.Context) error {
	if err := j.quiet(ctx); err != nil {
		return err
	}
	current, err := j.settled(ctx)
	if err != nil {
		return err
	}
	if current == nil {
		return j.first(ctx)
	}
	if !current.madeFor(j.name) && !j.want.Resource.TakeOver {
		return fault.Failedf("%q exists and is not ours", j.name).Hint(`remove it, or declare "take_over": true`)
	}
	if current.madeFor(j.name) && current.broken() {
		return j.anew(ctx, current)
	}
	different, err := j.k.differences(ctx, j.runtime, j.def, current)
	if err != nil {
		return err
	}
	if len(different) > 0 || !current.madeFor(j.name) {
		return j.replace(ctx, current)
	}
	switch life := j.life(current); {
	case life.difference != "":
		if err := j.revive(ctx, current); err == nil || !isRefusal(err) {
			return err
		}
		return j.anew(ctx, current)
	case j.want.Restart:
		return j.restart(ctx, current.ID)
	}
	return nil
}

// anew removes what cannot be brought back to life, such as one whose network is
// gone, and makes another.
func (j *job) anew(ctx context.Context, c *inspected) error {
	if err := j.runtime.remove(ctx, c.ID); err != nil {
		return err
	}
	return j.first(ctx)
}

func (j *job) life(c *inspected) life {
	return j.k.lifeOf(j.runtime, c, j.want.Resource.Container.Restart)
}

// quiet stops what the host took over from somebody and a reboot started again.
func (j *job) quiet(ctx context.Context) error {
	if j.before == nil {
		return nil
	}
	c, err := j.inspect(ctx, j.name+suffixBefore)
	if c == nil || err != nil || c.ID != j.before.ID || !c.State.Running {
		return err
	}
	if err := j.setRestart(ctx, c.ID, "no"); err != nil {
		return err
	}
	return j.stop(ctx, c.ID)
}

// revive brings one that is as defined back to life.
func (j *job) revive(ctx context.Context, c *inspected) error {
	switch {
	case c.State.Paused:
		return j.unpause(ctx, c.ID)
	case c.State.Running: // so the runtime believes
		return j.anew(ctx, c)
	}
	return j.start(ctx, c.ID)
}

// first makes the container where there is none.
func (j *job) first(ctx context.Context) error {
	id, err := j.make(ctx, j.name)
	if err != nil {
		return err
	}
	if err := j.start(ctx, id); err != nil {
		return fmt.Errorf("cannot start it: %w", err)
	}
	return nil
}

// make brings the image and makes a container of it, which does not run yet.
func (j *job) make(ctx context.Context, name string) (id string, err error) {
	j.k.images.RLock()
	defer j.k.images.RUnlock()
	image, err := j.k.ensureImage(ctx, j.runtime, j.want.Resource.Container)
	if err != nil {
		return "", err
	}
	return j.create(ctx, name, j.def.named(image))
}

// replace puts a new container in the place of the old one, see the package's
// story.
func (j *job) replace(ctx context.Context, old *inspected) error {
	next, err := j.make(ctx, j.name+suffixNext)
	if err != nil {
		return err
	}
	// One that never runs long is put back and not started.
	a := aside{container: old, name: j.name + suffixLast, run: old.State.Running}
	if !old.madeFor(j.name) {
		a.name = j.name + suffixBefore
		if err := j.setRestart(ctx, old.ID, "no"); err != nil {
			return err
		}
	}
	if err := j.rename(ctx, old.ID, a.name); err != nil {
		return err
	}
	if err := j.end(ctx, old); err != nil {
		return err
	}
	if err := j.rename(ctx, next, j.name); err != nil {
		return err
	}
	return j.prove(ctx, next, a)
}

// end stops a container that is on its way out. One that cannot be stopped, for
// it is half removed already, does not hold up the new one.
func (j *job) end(ctx context.Context, c *inspected) error {
	err := j.stop(ctx, c.ID)
	if isRefusal(err) && c.madeFor(j.name) {
		return j.runtime.remove(ctx, c.ID)
	}
	return err
}

// An aside is the old container, out of the way until the new one has proved
// itself.
type aside struct {
	container *inspected
	name      string
	// run says that it is started when it comes back.
	run bool
}

// prove starts the new container and sees it live; then the old one goes.
// Otherwise the old one comes back.
func (j *job) prove(ctx context.Context, id string, old aside) error {
	err := j.lives(ctx, id)
	if err == nil {
		if old.container.madeFor(j.name) {
			return j.runtime.remove(ctx, old.container.ID)
		}
		return nil // kept, to be given back
	}
	if errors.As(err, new(*unreachable)) {
		return err // the next pass finds what there is
	}
	if back := j.bringBack(ctx, id, old); back != nil {
		return fmt.Errorf("the new one does not run: %w; nor can the one before be brought back: %w", err, back)
	}
	return fmt.Errorf("the new one does not run, the one before is back: %w", err)
}

// bringBack removes the new container and gives the old one its name.
func (j *job) bringBack(ctx context.Context, id string, old aside) error {
	if err := j.runtime.remove(ctx, id); err != nil {
		return err
	}
	if !old.container.madeFor(j.name) {
		if err := j.setRestart(ctx, old.container.ID, old.container.HostConfig.RestartPolicy.Name); err != nil {
			return err
		}
	}
	if err := j.rename(ctx, old.container.ID, j.name); err != nil {
		return err
	}
	if !old.run {
		return nil
	}
	return j.start(ctx, old.container.ID)
}

// lives starts a container and watches it for a moment.
func (j *job) lives(ctx context.Context, id string) error {
	if err := j.start(ctx, id); err != nil {
		return err
	}
	moment, cancel := context.WithTimeout(ctx, j.k.settle)
	defer cancel()
	if err := j.await(moment, id); err != nil {
		return err
	}
	c, err := j.inspectAny(ctx, id)
	switch {
	case err != nil:
		return err
	case c == nil:
		return errors.New("it was removed")
	}
	life := j.life(c)
	if life.difference != "" || life.failing != "" && j.want.Resource.Container.Restart != declaration.RestartNever {
		return errors.New(life.difference + life.failing)
	}
	return nil
}

// silence takes the values of env_from out of what a runtime says.
func (d definition) silence(err error) error {
	text := err.Error()
	for _, s := range d.secrets {
		if len(s) > 3 {
			text = strings.ReplaceAll(text, s, "…")
		}
	}
	if text == err.Error() {
		return err
	}
	return fault.Failedf("%s", text).Hint("%s", fault.RemedyOf(err))
}
