package service

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/host/internal/apply"
	"github.com/nox-mesh/nox-mesh/host/internal/resource"
	"github.com/nox-mesh/nox-mesh/host/internal/resource/resourcetest"
)

func TestH08StatusAnswersWhileAResourceHangs(t *testing.T) {
	s := working(t, machine(t))
	s.engine.Limits = map[declaration.Type]apply.Limits{declaration.TypeFile: {Patience: 2 * time.Second, Deadline: time.Minute}}
	if _, err := s.Apply(t.Context(), []byte(`{"schema": 1, "name": "a", "resources": [
		{"id": "a", "type": "file", "path": "/srv/a", "content": "1"},
		{"id": "b", "type": "file", "path": "/srv/server/b", "content": "1"},
		{"id": "c", "type": "file", "path": "/srv/server/c", "content": "1"}]}`)); err != nil {
		t.Fatal(err)
	}
	away := resourcetest.Dead(t, s.Layout.Path("/srv/server"))
	if err := os.Remove(s.Layout.Path("/srv/a")); err != nil {
		t.Fatal(err)
	}
	if r, err := s.Pass(t.Context()); err != nil || r.Resources[0].Outcome != declaration.Repaired || r.Resources[1].Outcome != declaration.Failed {
		t.Errorf("the others do not go on: %+v, %v", r.Resources, err)
	}
	// What the pass left is not looked at: nobody waits for it.
	for range 2 {
		began := time.Now()
		st, err := s.Status(t.Context())
		if err != nil || st.Owned != 3 || len(st.Off) != 2 {
			t.Fatalf("%+v, %v", st, err)
		}
		for i, key := range []string{"file:/srv/server/b", "file:/srv/server/c"} {
			if o := st.Off[i]; o.Key != key || o.There != unknown || !strings.HasPrefix(strings.Join(o.Differences, ""), "it is still being worked on, for ") {
				t.Errorf("%+v", o)
			}
		}
		if st.Busy == nil || !strings.HasPrefix(st.Busy.Key, "file:/srv/server/") {
			t.Errorf("busy: %+v", st.Busy)
		}
		if took := time.Since(began); took > patience {
			t.Errorf("it took %s", took)
		}
	}
	away()
	deadline := time.Now().Add(20 * time.Second)
	for st, err := s.Status(t.Context()); err != nil || len(st.Off) != 0 || st.Busy != nil; st, err = s.Status(t.Context()) {
		if time.Now().After(deadline) {
			t.Fatalf("what hung is over, and yet: %+v, %v", st, err)
		}
		<-time.After(10 * time.Millisecond)
	}
}

// Nobody passed since the server went: who asks is the first to find it.
func TestH08StatusAnswersBeforeAPassKnowsWhatHangs(t *testing.T) {
	s := working(t, machine(t))
	if _, err := s.Apply(t.Context(), []byte(`{"schema": 1, "name": "a", "resources": [
		{"id": "b", "type": "file", "path": "/srv/server/b", "content": "1"},
		{"id": "c", "type": "file", "path": "/srv/server/c", "content": "1"},
		{"id": "d", "type": "file", "path": "/srv/d", "content": "1"}]}`)); err != nil {
		t.Fatal(err)
	}
	away := resourcetest.Dead(t, s.Layout.Path("/srv/server"))
	began := time.Now()
	for range 2 {
		st, err := s.Status(t.Context())
		if err != nil || len(st.Off) != 2 || st.Off[0].There != unknown || st.Off[1].There != unknown || st.Busy != nil {
			t.Errorf("%+v, %v", st, err)
		}
	}
	if took := time.Since(began); took > 2*patience {
		t.Errorf("it took %s", took)
	}
	away()
}

// looking is a kind of which only Check is asked.
type looking struct {
	resource.Kind
	check func() (resource.State, error)
}

func (k looking) Check(context.Context, resource.Want, *resource.Record) (resource.State, error) {
	return k.check()
}

// owning is a service that owns two files, and then looks at them so.
func owning(t *testing.T, check func() (resource.State, error)) *Service {
	t.Helper()
	s := working(t, machine(t))
	if _, err := s.Apply(t.Context(), []byte(`{"schema": 1, "name": "a", "resources": [
		{"id": "a", "type": "file", "path": "/srv/a", "content": "1"}, {"id": "b", "type": "file", "path": "/srv/b", "content": "1"}]}`)); err != nil {
		t.Fatal(err)
	}
	s.engine.Kinds[declaration.TypeFile] = looking{check: check}
	return s
}

func TestAPanicInALookIsSaidAndEndsNothing(t *testing.T) {
	s := owning(t, func() (resource.State, error) { panic("no such thing") })
	st, err := s.Status(t.Context())
	if err != nil || len(st.Off) != 2 || st.Off[1].There != unknown || st.Off[1].Differences[0] != "internal error: no such thing" {
		t.Errorf("%+v, %v", st, err)
	}
	if o, err := s.Owned(t.Context()); err != nil || len(o) != 2 || o[0].There != unknown {
		t.Errorf("%+v, %v", o, err)
	}
}

func TestNothingMoreIsLookedAtForWhoIsGone(t *testing.T) {
	ctx, leave := context.WithCancel(t.Context())
	looks := make(chan struct{}, 9)
	s := owning(t, func() (resource.State, error) {
		looks <- struct{}{}
		leave()
		return resource.State{Same: true}, nil
	})
	if _, err := s.Status(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("status: %v", err)
	}
	if _, err := s.Owned(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("owned: %v", err)
	}
	if len(looks) != 1 {
		t.Errorf("%d looks", len(looks))
	}
}
