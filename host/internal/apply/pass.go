package apply

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/host/internal/resource"
	"github.com/nox-mesh/nox-mesh/host/internal/store"
	"github.com/nox-mesh/nox-mesh/host/link"
)

// pass is one reconcile.
type pass struct {
	engine   *Engine
	wanted   *store.Wanted
	declared *declaration.Declaration
	records  map[string]*resource.Record
	restarts restarts
	// blocked are the ids that are not as declared, and how that is said to
	// what waits for them.
	blocked map[string]declaration.Outcome
	missing map[digest.Digest]error
	// eyes are the kinds for looking.
	eyes    map[declaration.Type]resource.Kind
	restamp []resource.Record
	// again: what is as declared and failing is started again.
	again  bool
	report link.Report
}

// restarts are what must be restarted because something it uses changed.
type restarts struct {
	// pending are the keys of those that must be.
	pending map[string]bool
	// users are the keys of what names an id in restart_on.
	users map[string][]string
}

func (r *restarts) changed(id string) {
	for _, key := range r.users[id] {
		r.pending[key] = true
	}
}

func usersOf(d *declaration.Declaration) map[string][]string {
	users := map[string][]string{}
	for i := range d.Resources {
		for _, id := range d.Resources[i].RestartOn {
			users[id] = append(users[id], d.Resources[i].Key())
		}
	}
	return users
}

// Reconcile makes one pass. It returns nil, nil when nothing was ever
// declared. The error is of the pass as a whole (the store cannot be read);
// what became of each resource is in the report. When ctx ends, what is in hand
// is finished and the rest is left for the next pass: the report then holds
// what was done, and the error is that of ctx.
//
// With again, what is as declared and fails to do its work (a process that was
// halted) is started again: a person asked.
func (e *Engine) Reconcile(ctx context.Context, trigger string, again bool) (*link.Report, error) {
	p := e.newPass()
	p.again = again
	if err := p.load(); err != nil {
		return nil, err
	}
	if err := p.settle(ctx); err != nil {
		return nil, err
	}
	if p.wanted == nil {
		return nil, nil
	}
	began := e.Clock.Now()
	p.report = link.Report{
		ID: newID(), Source: string(p.wanted.Source), Mesh: p.wanted.Mesh, Epoch: p.wanted.Epoch, Generation: p.wanted.Generation,
		Declaration: p.wanted.Digest, Trigger: trigger, Version: e.Version,
		Resources: []link.ResourceReport{},
	}
	e.forget(p.declared)
	p.fetch(ctx)
	p.removeUndeclared(ctx)
	p.applyDeclared(ctx)
	if err := e.Store.Restamp(p.restamp); err != nil {
		return nil, err
	}
	// Both by the clock as it is now, which may have been set meanwhile; how long
	// it took is not by the wall.
	ended := e.Clock.Now()
	p.report.Started, p.report.Finished = ended.Add(-ended.Sub(began)).UTC(), ended.UTC()
	return &p.report, ctx.Err()
}

func (e *Engine) newPass() *pass {
	return &pass{engine: e, records: map[string]*resource.Record{}, blocked: map[string]declaration.Outcome{}, missing: map[digest.Digest]error{}}
}

func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	return hex.EncodeToString(b[:])
}

// load reads what is declared and what is owned: much text, both of them, for
// which there may be more than one processor.
func (p *pass) load() error {
	owned := make(chan error, 1)
	go func() { owned <- p.know() }()
	var err error
	p.wanted, p.declared, err = p.engine.InForce()
	if err := <-owned; err != nil {
		return err
	}
	if p.declared != nil {
		p.restarts.users = usersOf(p.declared)
	}
	return err
}

// know reads what is owned, and what must be restarted.
func (p *pass) know() error {
	records, err := p.engine.Store.Records()
	if err != nil {
		return err
	}
	for i := range records {
		p.records[records[i].Key] = &records[i]
	}
	p.restarts.pending, err = p.engine.Store.Restarts()
	return err
}

// fetch brings the content that is declared and not here, before anything is
// touched. What cannot be had fails the resource that needs it.
func (p *pass) fetch(ctx context.Context) {
	for _, d := range p.declared.Sources() {
		if err := p.engine.Content.Ensure(ctx, d); err != nil {
			p.missing[d] = err
		}
	}
}

// applyDeclared brings every resource to what is declared, in order.
func (p *pass) applyDeclared(ctx context.Context) {
	order := p.declared.Order()
	members, position := make([]member, len(order)), map[string]int{}
	for i, n := range order {
		members[i] = p.engine.memberOf(&p.declared.Resources[n])
		position[members[i].id] = i
	}
	first := len(p.report.Resources)
	for _, w := range waves(members) {
		var tasks []*task
		for _, i := range w {
			if t := p.task(&p.declared.Resources[order[i]]); t != nil {
				tasks = append(tasks, t)
			}
		}
		if ctx.Err() != nil {
			return
		}
		p.wave(ctx, tasks)
	}
	slices.SortStableFunc(p.report.Resources[first:], func(a, b link.ResourceReport) int { return position[a.ID] - position[b.ID] })
}

// task is the resource's way through this pass; nil when it was told why there
// is none.
func (p *pass) task(r *declaration.Resource) *task {
	for _, id := range r.After {
		if o, ok := p.blocked[id]; ok && !p.serves(r, id, o) {
			p.tell(r.Key(), r.ID, verdict{declaration.Skipped, fmt.Sprintf("waits for %q, which is %s", id, o), nil})
			return nil
		}
	}
	t := p.taskOf(r)
	if t == nil {
		p.tell(r.Key(), r.ID, verdict{declaration.Unsupported, unsupported(r), nil})
	}
	return t
}

// serves reports whether the resource is the process whose own program is held: the
// one before it is what it runs by.
func (p *pass) serves(r *declaration.Resource, id string, o declaration.Outcome) bool {
	if o != declaration.Held || r.Process == nil || !r.Process.Rollback {
		return false
	}
	program := p.declared.Program(r.Process)
	return program != nil && program.ID == id
}

// taskOf is nil when this host has no such kind.
func (p *pass) taskOf(r *declaration.Resource) *task {
	kind, ok := p.engine.Kinds[r.Type]
	if !ok {
		return nil
	}
	key := r.Key()
	return &task{
		job: job{key: key, typ: r.Type}, resource: r, kind: kind,
		want: resource.Want{Resource: *r, Spec: r.Spec()}, prior: p.records[key], restart: p.restarts.pending[key],
	}
}

// record is the record of r as declared now; what was there before and the
// sequence are the caller's to say.
func (p *pass) record(r declaration.Resource, spec []byte) resource.Record {
	rec := resource.Record{Key: r.Key(), ID: r.ID, Type: r.Type, Spec: spec, At: p.engine.Clock.Now().UTC()}
	if p.wanted != nil {
		rec.Mesh, rec.Epoch, rec.Generation, rec.Declaration = p.wanted.Mesh, p.wanted.Epoch, p.wanted.Generation, p.wanted.Digest
	}
	return rec
}

// commit records what is ours, in one transaction.
func (p *pass) commit(recs ...resource.Record) error {
	if len(recs) == 0 {
		return nil
	}
	if err := p.engine.Store.Commit(recs...); err != nil {
		return err
	}
	for i := range recs {
		p.records[recs[i].Key] = &recs[i]
		delete(p.restarts.pending, recs[i].Key)
	}
	return nil
}

// tell puts a verdict into the report, and a line into the log when there is
// news in it.
func (p *pass) tell(key, id string, v verdict) {
	if !v.outcome.Good() {
		p.blocked[id] = v.outcome
	}
	line := link.ResourceReport{Key: key, ID: id, Outcome: v.outcome, Note: v.note}
	attrs := []any{"resource", key, "outcome", string(v.outcome)}
	if v.note != "" {
		attrs = append(attrs, "note", v.note)
	}
	if v.err != nil {
		line.Error = v.err.Error()
		attrs = append(attrs, "cause", line.Error)
	}
	p.report.Resources = append(p.report.Resources, line)
	switch {
	case v.outcome == declaration.Failed:
		p.engine.Log.Error("resource", attrs...)
	case v.outcome == declaration.Skipped:
		p.engine.Log.Warn("resource", attrs...)
	case v.outcome != declaration.Unchanged:
		p.engine.Log.Info("resource", attrs...)
	}
}
