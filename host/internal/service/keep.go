package service

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/bundle/content"
	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/host/internal/replace"
	"github.com/nox-mesh/nox-mesh/host/internal/resource/file"
	"github.com/nox-mesh/nox-mesh/host/internal/store"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// When content is collected: after a pass that had something to say, since only
// then somebody may need less than before; at the start of the service, for what
// a kill left; and before a command that did the work itself ends. A pass that
// finds all as declared collects nothing.

// lastCollection bounds the collection of a command that is about to end.
const lastCollection = 10 * time.Second

// collectFirst is for the start of the service. A machine that was never told
// anything may be in the middle of its first bundle: what came of it is kept for
// who comes again.
func (s *Service) collectFirst() {
	if w, err := s.store.About(); err == nil && w != nil {
		s.collector.Due()
	}
}

// collectLast is for the end of a command: nobody else will.
func (s *Service) collectLast() {
	if s.served {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), lastCollection)
	defer cancel()
	s.collector.Once(ctx)
}

// collected logs what a collection did.
func (s *Service) collected(r content.Report, err error) {
	if len(r.Removed) > 0 && s.served {
		s.weigh()
	}
	switch {
	case err != nil:
		s.Log.Warn("content that nobody needs is not thrown away", "cause", err)
	case len(r.Removed) > 0:
		s.Log.Info("content that nobody needs is thrown away", "blobs", len(r.Removed), "bytes", r.Bytes)
	}
}

// weigh looks how much there is, for who asks without wanting a look.
func (s *Service) weigh() {
	if blobs, bytes, err := s.content.Size(); err == nil {
		s.tally.weighed(Content{Blobs: blobs, Bytes: bytes})
	}
}

// keep is what this host needs of the content store: what is declared, what it
// owns (to repair it, and to give back what was there before), what it was about
// to touch, the bundle whose declaration is in force, and its own programs. The
// marks of other bundles are over.
func (s *Service) keep(context.Context) (content.Kept, error) {
	var k content.Kept
	if aside := store.SetAside(s.Layout.HostStore()); len(aside) > 0 {
		return k, fault.Failedf("the store was damaged and is set aside as %q: what was there before this host came may be known to it alone", aside[0]).
			Hint("remove that file when you have looked at it")
	}
	w, d, err := s.engine.InForce()
	if err != nil {
		return k, err
	}
	if w == nil {
		return k, fault.Failedf("no declaration is in force").Hint("apply one, or wait for the mesh to send it")
	}
	for i := range d.Resources {
		keepSources(&k, &d.Resources[i])
	}
	if err := s.keepOwned(&k); err != nil {
		return k, err
	}
	if w.Bundle != "" {
		k.Trees = append(k.Trees, digest.Digest(w.Bundle))
	}
	marks, err := s.content.Marks()
	if err != nil {
		return k, err
	}
	for _, m := range marks {
		k.Unmark = append(k.Unmark, m.Digest) // but for those in Trees
	}
	programs, err := replace.Programs("/proc/self/exe", s.Layout.Launcher())
	k.Blobs = append(append(k.Blobs, programs...), s.keptForReturn()...)
	return k, err
}

// keepOwned adds what records and open intents need.
func (s *Service) keepOwned(k *content.Kept) error {
	records, err := s.store.Records()
	if err != nil {
		return err
	}
	for _, r := range records {
		if err := keepThing(k, r.Key, r.ID, r.Type, r.Spec, r.Before); err != nil {
			return err
		}
	}
	intents, err := s.store.Intents()
	if err != nil {
		return err
	}
	for _, i := range intents {
		if err := keepThing(k, i.Key, i.ID, i.Type, i.Spec, i.Before); err != nil {
			return err
		}
	}
	return nil
}

// references says, by type, what of the content store is needed to give back
// what was there before the host came. Of a type that is not here nobody knows,
// and nothing is thrown away while such a thing is owned.
var references = map[declaration.Type]func(before json.RawMessage) ([]digest.Digest, error){
	declaration.TypeFile:      file.References,
	declaration.TypeProcess:   nothing,
	declaration.TypeUnit:      nothing,
	declaration.TypePackage:   nothing,
	declaration.TypeContainer: nothing,
}

// nothing is for a kind that keeps all it needs in the record.
func nothing(json.RawMessage) ([]digest.Digest, error) { return nil, nil }

func keepThing(k *content.Kept, key, id string, t declaration.Type, spec, before json.RawMessage) error {
	// What names no content spells no digest.
	if bytes.Contains(spec, []byte(digest.SHA256+":")) {
		r, err := declaration.FromSpec(id, spec)
		if err != nil {
			return fmt.Errorf("cannot tell what %q needs: %w", key, err)
		}
		keepSources(k, &r)
	}
	of, ok := references[t]
	if !ok {
		return fmt.Errorf("cannot tell what %q needs: this version does not know the type %q", key, t)
	}
	more, err := of(before)
	if err != nil {
		return fmt.Errorf("cannot tell what %q needs: %w", key, err)
	}
	k.Blobs = append(k.Blobs, more...)
	return nil
}

// keepSources adds the content a resource names: an image with all that is under
// its manifest.
func keepSources(k *content.Kept, r *declaration.Resource) {
	if r.Container != nil {
		k.Trees = append(k.Trees, r.Sources()...)
		return
	}
	k.Blobs = append(k.Blobs, r.Sources()...)
}
