package apply

import (
	"context"
	"fmt"
	"slices"

	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/host/internal/resource"
)

// removeUndeclared takes away what is ours and no longer declared, the last
// applied first.
func (p *pass) removeUndeclared(ctx context.Context) {
	gone := undeclared(p.records, p.declared)
	members, leaving := make([]member, len(gone)), map[string]bool{}
	for i, r := range gone {
		leaving[r.Key] = true
		members[i] = p.engine.memberOfRecord(r)
	}
	for _, w := range runs(members) {
		if ctx.Err() != nil {
			return
		}
		records := make([]*resource.Record, 0, len(w))
		for _, i := range w {
			records = append(records, gone[i])
		}
		if len(p.missing) > 0 {
			for _, r := range records {
				p.tell(r.Key, r.ID, verdict{declaration.Skipped, "stays until all content of the new declaration is here", nil})
			}
			continue
		}
		p.remove(ctx, records, leaving)
	}
}

// undeclared are the records of what is not declared, the last applied first.
func undeclared(records map[string]*resource.Record, d *declaration.Declaration) []*resource.Record {
	declared := map[string]bool{}
	for i := range d.Resources {
		declared[d.Resources[i].Key()] = true
	}
	var gone []*resource.Record
	for _, r := range records {
		if !declared[r.Key] {
			gone = append(gone, r)
		}
	}
	slices.SortFunc(gone, func(a, b *resource.Record) int { return int(int64(b.Sequence) - int64(a.Sequence)) })
	return gone
}

// memberOfRecord is memberOf for what was applied once. It asks nothing of the
// machine: this is the pass's own time, and a disk may hang.
func (e *Engine) memberOfRecord(r *resource.Record) member {
	was, err := declaration.FromSpec(r.ID, r.Spec)
	if err != nil || e.namesHost(r.Key) {
		return member{}
	}
	if was.Unit != nil {
		// What was started after another is stopped before it, and no record
		// says what was.
		return member{}
	}
	m := e.memberOf(&was)
	m.after = nil // the order of the list is that of removal
	return m
}

// remove takes away resources that can be worked on at once; each is forgotten
// after it is gone.
func (p *pass) remove(ctx context.Context, records []*resource.Record, leaving map[string]bool) {
	type removal struct {
		job
		verdict
	}
	removals, todo := make([]removal, len(records)), make([]*job, len(records))
	for i, r := range records {
		removals[i].key, removals[i].typ = r.Key, r.Type
		todo[i] = &removals[i].job
	}
	rest, before := p.bequeath(records, leaving)
	if before == nil {
		// What is gone must be forgotten, or it is removed again when somebody makes it.
		if err := p.engine.Store.Ready(); err != nil {
			before = fmt.Errorf("that it is gone could not be recorded: %w", err)
		}
	}
	kind, known := p.engine.Kinds[records[0].Type]
	if known {
		kind = at(kind, len(records))
	}
	p.engine.work(ctx, todo, len(records), func(ctx context.Context, i int) (err error) {
		r, v := records[i], &removals[i].verdict
		stays := p.engine.stays(r)
		if stays == "" && p.wanted.Leave {
			stays = "left as it is, unmanaged"
		}
		switch {
		case before != nil:
			return before
		case stays != "":
			v.outcome, v.note = declaration.Released, stays
		case !known:
			return unknownType(r.Type)
		default:
			v.outcome, v.note, err = kind.Remove(ctx, *rest[i])
		}
		return err
	})
	var gone []string
	for i := range removals {
		if removals[i].job.err == nil {
			gone = append(gone, removals[i].key)
		}
	}
	err := p.engine.Store.Forget(gone...)
	for i, r := range records {
		var v verdict
		switch {
		case removals[i].job.err != nil:
			// Its own verdict may be in the making still: it was left.
			v = untouched(removals[i].job.err)
		case err != nil:
			v = failed(err)
		default:
			v = removals[i].verdict
			delete(p.records, r.Key)
		}
		p.tell(r.Key, r.ID, v)
	}
}
