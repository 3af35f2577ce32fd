package apply

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/host/internal/resource"
	"github.com/nox-mesh/nox-mesh/host/internal/resource/resourcetest"
	"github.com/nox-mesh/nox-mesh/host/internal/store"
)

// planned is a plan as lines, with what is wrong.
func planned(t *testing.T, l *lab, resources ...string) string {
	t.Helper()
	steps, err := l.engine.Plan(t.Context(), store.SourceFile, document(resources...))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, s := range steps {
		out = append(out, strings.TrimSpace(string(s.Action)+" "+s.Key+" "+s.Error))
	}
	return strings.Join(out, "\n")
}

func TestH08APlanIsMadeThoughAFileHangs(t *testing.T) {
	l := newLab(t)
	server := filepath.Join(l.root, "srv/server")
	must(t, os.MkdirAll(server, 0o755))
	l.applied(aFile("a", "/etc/a", "1"), aFile("b", "/srv/server/b", "1"), aFile("gone", "/srv/server/gone", "1"), aFile("went", "/srv/server/went", "1"))
	l.engine.Limits = map[declaration.Type]Limits{declaration.TypeFile: {Patience: time.Second, Deadline: time.Minute}}
	away := resourcetest.Dead(t, server)
	for range 3 {
		began := time.Now()
		got := strings.Split(planned(t, l, aFile("a", "/etc/a", "2"), aFile("b", "/srv/server/b", "2"), aFile("new", "/srv/server/new", "1")), "\n")
		for i, says := range []string{"remove file:/srv/server/went", "remove file:/srv/server/gone", "change file:/etc/a", "change file:/srv/server/b", "change file:/srv/server/new"} {
			if i >= len(got) || !strings.HasPrefix(got[i], says) || strings.Contains(got[i], " look") != strings.Contains(says, "server") {
				t.Errorf("want %q of\n%s", says, strings.Join(got, "\n"))
			}
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("it took %s", took)
		}
	}
	if b := l.engine.Busy(); b != nil {
		t.Errorf("a plan is at work: %+v", b)
	}
	away()
}

func TestH08WhatHangsIsAcceptedAndFailsAlone(t *testing.T) {
	l := newLab(t)
	server := filepath.Join(l.root, "srv/server")
	must(t, os.MkdirAll(server, 0o755))
	l.engine.Limits = map[declaration.Type]Limits{declaration.TypeFile: {Patience: time.Second, Deadline: time.Minute}}
	back := make(chan struct{}, 2)
	l.engine.Late = func() { back <- struct{}{} }
	away := resourcetest.Dead(t, server)
	accepted := make(chan error)
	go func() { accepted <- l.accept(aFile("b", "/srv/server/b", "1"), aFile("a", "/etc/a", "1")) }()
	select {
	case err := <-accepted:
		must(t, err)
	case <-time.After(30 * time.Second):
		t.Error("it is not accepted")
		away()
		<-accepted
		return
	}
	got := l.pass()
	if !strings.HasPrefix(got, "failed file:/srv/server/b (not done after 1s") || !strings.HasSuffix(got, "applied file:/etc/a") {
		t.Error(got)
	}
	away()
	<-back
}

func TestH08WhatIsNoLongerDeclaredHangsAndThePassGoesOn(t *testing.T) {
	l := newLab(t)
	server := filepath.Join(l.root, "srv/server")
	must(t, os.MkdirAll(server, 0o755))
	l.applied(aProcess("a", ""), aFile("b", "/srv/server/b", "1"))
	l.engine.Limits = map[declaration.Type]Limits{declaration.TypeFile: {Patience: 2 * time.Second, Deadline: time.Minute}}
	back := make(chan struct{}, 1)
	l.engine.Late = func() { back <- struct{}{} }
	away := resourcetest.Dead(t, server)
	passed := make(chan string)
	go func() { passed <- l.applied(aFile("c", "/etc/c", "1")) }()
	select {
	case got := <-passed:
		l.want(got, "failed file:/srv/server/b (not done after 2s: it goes on, and a later pass looks at it again)", "removed process:a", "applied file:/etc/c")
	case <-time.After(20 * time.Second):
		t.Error("the pass hangs")
		away()
		<-passed
		return
	}
	if b := l.engine.Busy(); b == nil || b.Key != "file:/srv/server/b" {
		t.Errorf("busy: %+v", b)
	}
	away()
	<-back
	l.want(l.pass(), "removed file:/srv/server/b", "unchanged file:/etc/c")
}

// asked is a kind that counts how often it looked; it waits at each look for what
// a test lets through.
type asked struct {
	resource.Kind
	looks atomic.Int32
	at    chan struct{}
	pass  chan struct{}
}

func (k *asked) Check(context.Context, resource.Want, *resource.Record) (resource.State, error) {
	k.looks.Add(1)
	k.at <- struct{}{}
	<-k.pass
	return resource.State{Exists: true, Same: true}, nil
}

func TestAPassIsNotHeldUpByAPlan(t *testing.T) {
	l := newLab(t)
	l.applied(aProcess("p", ""))
	slow := &asked{Kind: l.machine, at: make(chan struct{}, 9), pass: make(chan struct{})}
	l.engine.Kinds[declaration.TypeProcess] = slow
	plan := make(chan string)
	go func() { plan <- planned(t, l, aProcess("p", "")) }()
	<-slow.at
	l.engine.Kinds[declaration.TypeProcess] = l.machine
	l.want(l.pass(), "unchanged process:p")
	close(slow.pass)
	l.want(<-plan, "keep process:p")
}

// inquiring is an inquiry of a kind of processes, in a bubble of time.
func inquiring(t *testing.T, k resource.Kind) (*Engine, func(name string) (resource.State, error)) {
	e, _ := aBench(t)
	e.Kinds = map[declaration.Type]resource.Kind{declaration.TypeProcess: k}
	q := e.Inquire(5 * time.Second)
	return e, func(name string) (resource.State, error) {
		return q.Check(t.Context(), wanted(t, name), nil)
	}
}

func wanted(t *testing.T, name string) resource.Want {
	t.Helper()
	d, err := declaration.Parse(document(aProcess(name, "")))
	must(t, err)
	return resource.Want{Resource: d.Resources[0], Spec: d.Resources[0].Spec()}
}

func TestManyAskersMakeOneLookAtWhatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hangs := &asked{at: make(chan struct{}, 99), pass: make(chan struct{})}
		e, _ := inquiring(t, hangs)
		var all sync.WaitGroup
		start := time.Now()
		for i := range 20 {
			all.Go(func() {
				q := e.Inquire(5 * time.Second)
				for _, name := range []string{"a", "b", "c"} {
					want := wanted(t, name)
					want.Spec = append(want.Spec, strings.Repeat(" ", i%2)...) // another wish
					if _, err := q.Check(t.Context(), want, nil); !errors.As(err, new(lateError)) {
						t.Errorf("%s: %v", name, err)
					}
				}
			})
		}
		all.Wait()
		if n, took := hangs.looks.Load(), time.Since(start); n != 3 || took != 5*time.Second+2*5*time.Second/hurried {
			t.Errorf("%d looks in %s", n, took)
		}
		close(hangs.pass)
		synctest.Wait()
	})
}

// What was looked at before somebody asked is no answer to him, though there is
// one look at a time.
func TestAnAnswerIsNotOlderThanItsQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := &asked{at: make(chan struct{}, 99), pass: make(chan struct{})}
		e, check := inquiring(t, slow)
		go func() { _, _ = check("a") }()
		synctest.Wait()
		var all sync.WaitGroup
		for range 19 {
			all.Go(func() {
				if st, err := e.Inquire(5*time.Second).Check(t.Context(), wanted(t, "a"), nil); !st.Same || err != nil {
					t.Errorf("%+v, %v", st, err)
				}
			})
		}
		for range 2 {
			synctest.Wait()
			slow.pass <- struct{}{}
		}
		all.Wait()
		if n := slow.looks.Load(); n != 2 {
			t.Errorf("%d looks", n)
		}
	})
}

func TestWhatAPassLeftIsNotLookedAtForAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := &asked{at: make(chan struct{}, 99), pass: make(chan struct{})}
		close(slow.pass)
		e, check := inquiring(t, slow)
		wakes := make(chan struct{})
		j := &job{key: "process:hangs", typ: declaration.TypeProcess}
		done := make(chan struct{})
		go func() {
			e.work(t.Context(), []*job{j}, 1, func(context.Context, int) error { <-wakes; return nil })
			close(done)
		}()
		synctest.Wait()
		if _, err := check("hangs"); err != nil {
			t.Errorf("what is only in hand: %v", err)
		}
		<-done
		start := time.Now()
		_, err := check("hangs")
		if !errors.As(err, new(lateError)) || err.Error() != "it is still being worked on, for 2m0s" || time.Since(start) != 0 || slow.looks.Load() != 1 {
			t.Errorf("%v after %s, %d looks", err, time.Since(start), slow.looks.Load())
		}
		close(wakes)
		synctest.Wait()
		if _, err := check("hangs"); err != nil || slow.looks.Load() != 2 {
			t.Errorf("after it came back: %v", err)
		}
	})
}
