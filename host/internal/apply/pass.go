package apply

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"path"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/host/internal/resource"
	"github.com/nox-mesh/nox-mesh/host/internal/store"
	"github.com/nox-mesh/nox-mesh/host/link"
	"github.com/nox-mesh/nox-mesh/internal/layout"
)

// pass is one reconcile.
type pass struct {
	engine   *Engine
	wanted   *store.Wanted
	declared *declaration.Declaration
	records  map[string]*resource.Record
	restarts map[string]bool
	// blocked are the ids that are not as declared, and how that is said to
	// what waits for them.
	blocked map[string]declaration.Outcome
	missing map[digest.Digest]error
	restamp []resource.Record
	// again: what is as declared and failing is started again.
	again  bool
	report link.Report
}

// Reconcile makes one pass. It returns nil, nil when nothing was ever
// declared. The error is of the pass as a whole (the store cannot be read);
// what became of each resource is in the report. When ctx ends, the resource
// in hand is finished and the rest is left for the next pass: the report then
// holds what was done, and the error is that of ctx.
//
// With again, what is as declared and fails to do its work (a process that was
// halted) is started again: a person asked.
func (e *Engine) Reconcile(ctx context.Context, trigger string, again bool) (*link.Report, error) {
	p := &pass{engine: e, again: again, records: map[string]*resource.Record{}, blocked: map[string]declaration.Outcome{}, missing: map[digest.Digest]error{}}
	if err := p.load(); err != nil {
		return nil, err
	}
	if err := p.settle(ctx); err != nil {
		return nil, err
	}
	if p.wanted == nil {
		return nil, nil
	}
	p.report = link.Report{
		ID: newID(), Source: string(p.wanted.Source), Mesh: p.wanted.Mesh, Epoch: p.wanted.Epoch, Generation: p.wanted.Generation,
		Declaration: p.wanted.Digest, Trigger: trigger, Started: e.Clock.Now().UTC(), Version: e.Version,
		Resources: []link.ResourceReport{},
	}
	p.fetch(ctx)
	p.removeUndeclared(ctx)
	for _, i := range p.declared.Order() {
		if ctx.Err() == nil {
			p.apply(ctx, &p.declared.Resources[i])
		}
	}
	if err := e.Store.Restamp(p.restamp); err != nil {
		return nil, err
	}
	p.report.Finished = e.Clock.Now().UTC()
	return &p.report, ctx.Err()
}

func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	return hex.EncodeToString(b[:])
}

func (p *pass) load() (err error) {
	if p.wanted, err = p.engine.Store.Wanted(); err != nil {
		return err
	}
	if p.wanted != nil {
		if p.declared, err = declaration.Parse(p.wanted.Document); err != nil {
			return fmt.Errorf("cannot read the declaration in force: %w", err)
		}
	}
	records, err := p.engine.Store.Records()
	if err != nil {
		return err
	}
	for i := range records {
		p.records[records[i].Key] = &records[i]
	}
	p.restarts, err = p.engine.Store.Restarts()
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

func (p *pass) removeUndeclared(ctx context.Context) {
	declared := map[string]bool{}
	for i := range p.declared.Resources {
		declared[p.declared.Resources[i].Key()] = true
	}
	var gone []*resource.Record
	for _, r := range p.records {
		if !declared[r.Key] {
			gone = append(gone, r)
		}
	}
	slices.SortFunc(gone, func(a, b *resource.Record) int { return int(int64(b.Sequence) - int64(a.Sequence)) })
	for _, r := range gone {
		if ctx.Err() != nil {
			return
		}
		if len(p.missing) > 0 {
			p.tell(r.Key, r.ID, declaration.Skipped, "stays until all content of the new declaration is here", nil)
			continue
		}
		p.remove(ctx, r)
	}
}

func (p *pass) remove(ctx context.Context, r *resource.Record) {
	ctx, done := p.engine.on(ctx, r.Key)
	defer done()
	defer p.caught(r.Key, r.ID)
	outcome, note, err := declaration.Released, "the host itself stays", error(nil)
	if !p.engine.isHostBinary(r.Key) {
		kind, ok := p.engine.Kinds[r.Type]
		if !ok {
			p.tell(r.Key, r.ID, declaration.Failed, "", fmt.Errorf("cannot remove it: this version does not know the type %q", r.Type))
			return
		}
		outcome, note, err = kind.Remove(ctx, *r)
	}
	if err == nil {
		err = p.engine.Store.Forget(r.Key)
	}
	if err != nil {
		p.tell(r.Key, r.ID, declaration.Failed, "", err)
		return
	}
	delete(p.records, r.Key)
	p.tell(r.Key, r.ID, outcome, note, nil)
}

// caught makes a panic of a kind the failure of its resource: one bad resource
// must not take the whole host down at each pass.
func (p *pass) caught(key, id string) {
	if r := recover(); r != nil {
		p.engine.Log.Error("internal error", "resource", key, "panic", r, "stack", string(debug.Stack()))
		p.tell(key, id, declaration.Failed, "", fmt.Errorf("internal error: %v", r))
	}
}

// isHostBinary: leaving the host's own binary out of a declaration never
// removes it, and puts no older one back.
func (e *Engine) isHostBinary(key string) bool {
	p, ok := strings.CutPrefix(key, "file:")
	return ok && (e.isBinary(p) || slices.ContainsFunc(e.Layout.Prefixes(), func(prefix string) bool { return p == path.Join(prefix, "bin", layout.HostName) }))
}

// apply brings one resource to what is declared.
func (p *pass) apply(ctx context.Context, r *declaration.Resource) {
	ctx, done := p.engine.on(ctx, r.Key())
	defer done()
	defer p.caught(r.Key(), r.ID)
	for _, id := range r.After {
		if o, ok := p.blocked[id]; ok {
			p.tell(r.Key(), r.ID, declaration.Skipped, fmt.Sprintf("waits for %q, which is %s", id, o), nil)
			return
		}
	}
	outcome, note, err := p.bring(ctx, r)
	p.tell(r.Key(), r.ID, outcome, note, err)
}

func (p *pass) bring(ctx context.Context, r *declaration.Resource) (declaration.Outcome, string, error) {
	kind, ok := p.engine.Kinds[r.Type]
	if !ok {
		return declaration.Unsupported, unsupported(r), nil
	}
	key := r.Key()
	want := resource.Want{Resource: *r, Spec: r.Spec(), Restart: p.restarts[key]}
	prior := p.records[key]
	st, err := kind.Check(ctx, want, prior)
	if err != nil {
		return declaration.Failed, "", err
	}
	if st.Same && st.Failing != "" && p.again {
		want.Restart = true
		st.Same, st.Differences = false, []string{st.Failing}
	}
	if st.Same {
		return p.keep(r, want, prior, st)
	}
	if st.Foreign && prior == nil && !r.TakeOver {
		return declaration.Failed, "", fmt.Errorf("exists and is not ours (%s); say \"take_over\": true to own it", strings.Join(st.Differences, ", "))
	}
	for _, source := range r.Sources() {
		if err := p.missing[source]; err != nil {
			return declaration.Failed, "", err
		}
	}

	rec := p.record(*r, want.Spec)
	rec.Before = st.Found
	drift := false
	if prior != nil {
		rec.Before, rec.Sequence, rec.Adopted = prior.Before, prior.Sequence, prior.Adopted
		drift = bytes.Equal(prior.Spec, want.Spec) && !want.Restart
	}
	users := p.restartedBy(r.ID)
	if err := p.engine.Store.Begin(store.Intent{
		Key: key, ID: r.ID, Type: r.Type, Spec: want.Spec, Before: rec.Before, Restarts: users, At: p.engine.Clock.Now().UTC(),
	}); err != nil {
		return declaration.Failed, "", err
	}
	for _, u := range users {
		p.restarts[u] = true
	}
	if err := kind.Apply(ctx, want, prior, st); err != nil {
		return declaration.Failed, "", err
	}
	want.Restart = false
	now, err := kind.Check(ctx, want, &rec)
	if err != nil {
		return declaration.Failed, "", err
	}
	if !now.Same {
		return declaration.Failed, "", fmt.Errorf("was applied and is still not as declared: %s", strings.Join(now.Differences, ", "))
	}
	if err := p.commit(rec); err != nil {
		return declaration.Failed, "", err
	}
	if now.Failing != "" {
		return declaration.Failed, now.Note, errors.New(now.Failing)
	}
	if drift {
		return declaration.Repaired, join("drifted: "+strings.Join(st.Differences, ", "), st.Note, now.Note), nil
	}
	return declaration.Applied, join(st.Note, now.Note), nil
}

// unsupported says why nothing is done about a resource that can be declared.
func unsupported(r *declaration.Resource) string {
	return fmt.Sprintf("this version of the host cannot apply resources of the type %q", r.Type)
}

// keep is for a resource that is as declared: it is adopted, or stays ours,
// and nothing is written that says the same as before.
func (p *pass) keep(r *declaration.Resource, want resource.Want, prior *resource.Record, st resource.State) (declaration.Outcome, string, error) {
	rec := p.record(*r, want.Spec)
	if prior == nil {
		rec.Before, rec.Adopted = st.Found, true
		if err := p.commit(rec); err != nil {
			return declaration.Failed, "", err
		}
		if st.Failing != "" {
			return declaration.Failed, st.Note, errors.New(st.Failing)
		}
		return declaration.Adopted, st.Note, nil
	}
	rec.Before, rec.Sequence, rec.Adopted = prior.Before, prior.Sequence, prior.Adopted
	if rec.Declaration != prior.Declaration || rec.Mesh != prior.Mesh || rec.Epoch != prior.Epoch || !bytes.Equal(rec.Spec, prior.Spec) || rec.ID != prior.ID {
		if bytes.Equal(rec.Spec, prior.Spec) {
			rec.At = prior.At
		}
		p.restamp = append(p.restamp, rec)
	}
	if st.Failing != "" {
		return declaration.Failed, st.Note, errors.New(st.Failing)
	}
	return declaration.Unchanged, st.Note, nil
}

// restartedBy are the keys of the resources that name id in restart_on.
func (p *pass) restartedBy(id string) []string {
	var out []string
	for i := range p.declared.Resources {
		if slices.Contains(p.declared.Resources[i].RestartOn, id) {
			out = append(out, p.declared.Resources[i].Key())
		}
	}
	return out
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

func (p *pass) commit(rec resource.Record) error {
	if err := p.engine.Store.Commit(rec); err != nil {
		return err
	}
	p.records[rec.Key] = &rec
	delete(p.restarts, rec.Key)
	return nil
}

// tell puts an outcome into the report, and a line into the log when there is
// news in it.
func (p *pass) tell(key, id string, o declaration.Outcome, note string, err error) {
	if !o.Good() {
		p.blocked[id] = o
	}
	line := link.ResourceReport{Key: key, ID: id, Outcome: o, Note: note}
	attrs := []any{"resource", key, "outcome", string(o)}
	if note != "" {
		attrs = append(attrs, "note", note)
	}
	if err != nil {
		line.Error = err.Error()
		attrs = append(attrs, "cause", line.Error)
	}
	p.report.Resources = append(p.report.Resources, line)
	switch {
	case o == declaration.Failed:
		p.engine.Log.Error("resource", attrs...)
	case o == declaration.Skipped:
		p.engine.Log.Warn("resource", attrs...)
	case o != declaration.Unchanged:
		p.engine.Log.Info("resource", attrs...)
	}
}

// join puts together what there is to say.
func join(notes ...string) string {
	return strings.Join(slices.DeleteFunc(notes, func(n string) bool { return n == "" }), "; ")
}
