package supervise

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/nox-mesh/nox-mesh/host/internal/slots"
)

func TestDamagedRollbackIsWrittenAgain(t *testing.T) {
	r := newTrial(t)
	r.lay(good, 0o755)
	shim := r.up()
	r.proven(good)
	r.lay(bad, 0o755)
	r.end()
	r.back(bad)
	if err := os.WriteFile(filepath.Join(r.dir, RollbackFile), []byte("{{"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.knows("all of it", func(v Rollback) bool { return v.Back() && v.Find(Digest([]byte(bad))) != nil })
	r.down(shim)
}

func TestRollbackFitsIntoItsSlot(t *testing.T) {
	long := strings.Repeat("\x00", 5000) // the longest when it is escaped
	id := identity{1<<64 - 1, 1<<64 - 1, 1<<63 - 1, -1 << 63, -1 << 63}
	digest := Digest(nil)
	r := Rollback{Sequence: 1<<64 - 4, Program: digest, Good: &Good{digest, id, 1<<32 - 1, 1<<32 - 1, 1<<32 - 1}, Returning: digest, Put: &id, Unable: long}
	for i := range 10 {
		r.add(Failure{Digest([]byte{byte(i)}), 1000, long, time.Now().UTC()})
	}
	dir := t.TempDir()
	if err := r.save(dir); err != nil {
		t.Fatal(err)
	}
	if got, err := ReadRollback(dir); err != nil || len(got.Failed) != maxFailed || got.Failed[0].Digest != Digest([]byte{9}) {
		t.Errorf("%+v, %v", got, err)
	}
}

// A shim may be years older than the host that reads what it knows, or newer.
func TestRollbackIsReadAcrossVersions(t *testing.T) {
	const first = `{"sequence":2,"program":"p","good":{"digest":"d","from":{"dev":1,"ino":2,"size":3,"mtime":4,"ctime":5},"mode":493,"uid":6,"gid":7},"failed":[{"digest":"f","failures":5,"last_exit":"exited with 1","at":"2001-09-09T01:46:40Z"}],"put":{"dev":1,"ino":2,"size":3,"mtime":4,"ctime":5}}`
	id := identity{1, 2, 3, 4, 5}
	want := Rollback{Sequence: 2, Program: "p", Good: &Good{"d", id, 0o755, 6, 7}, Failed: []Failure{{"f", 5, "exited with 1", time.Unix(1e9, 0).UTC()}}, Put: &id}
	b, err := slots.Encode(want)
	if err != nil || !bytes.HasPrefix(b[sumSize:], []byte(first+"\n")) {
		t.Fatalf("%.600s, %v", b, err)
	}
	if got, ok := slots.Decode[Rollback](b, 0); !ok || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, ok)
	}
}
