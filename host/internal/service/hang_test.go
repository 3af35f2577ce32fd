package service

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/host/internal/apply"
)

// dead mounts a file system whose server never answers: who asks it hangs, until
// the server is taken away.
func dead(t *testing.T, dir string) (away func()) {
	t.Helper()
	fuse, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	if err == nil {
		err = syscall.Mount("dead", dir, "fuse", 0, fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0", fuse.Fd()))
	}
	if err != nil {
		t.Skipf("nothing that hangs can be had here: %v", err)
	}
	over := false
	away = func() {
		if over {
			return
		}
		over = true
		fuse.Close()
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(away)
	return away
}

func TestH08StatusAnswersWhileAResourceHangs(t *testing.T) {
	s := working(t, machine(t))
	s.engine.Limits = map[declaration.Type]apply.Limits{declaration.TypeFile: {Patience: 100 * time.Millisecond, Deadline: time.Minute}}
	if _, err := s.Apply(t.Context(), []byte(`{"schema": 1, "name": "a", "resources": [
		{"id": "a", "type": "file", "path": "/srv/a", "content": "1"},
		{"id": "b", "type": "file", "path": "/srv/server/b", "content": "1"},
		{"id": "c", "type": "file", "path": "/srv/server/c", "content": "1"}]}`)); err != nil {
		t.Fatal(err)
	}
	away := dead(t, s.Layout.Path("/srv/server"))
	if err := os.Remove(s.Layout.Path("/srv/a")); err != nil {
		t.Fatal(err)
	}
	if r, err := s.Pass(t.Context()); err != nil || r.Resources[0].Outcome != declaration.Repaired || r.Resources[1].Outcome != declaration.Failed {
		t.Errorf("the others do not go on: %+v, %v", r.Resources, err)
	}
	for range 2 { // the second does not look again at what hangs
		began := time.Now()
		st, err := s.Status(t.Context())
		if err != nil || st.Owned != 3 || len(st.Off) != 2 {
			t.Fatalf("%+v, %v", st, err)
		}
		for i, key := range []string{"file:/srv/server/b", "file:/srv/server/c"} {
			if o := st.Off[i]; o.Key != key || o.There != unknown || !strings.Contains(strings.Join(o.Differences, ""), "look") {
				t.Errorf("%+v", o)
			}
		}
		if st.Busy == nil || !strings.HasPrefix(st.Busy.Key, "file:/srv/server/") {
			t.Errorf("busy: %+v", st.Busy)
		}
		if took := time.Since(began); took > 2*patience {
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
