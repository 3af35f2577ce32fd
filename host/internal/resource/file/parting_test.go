package file

import (
	"fmt"
	"os"
	"testing"

	"github.com/nox-mesh/nox-mesh/host/internal/resource"
)

// parts fails the test unless Parting says so of each of the records in turn.
func (b *bench) parts(says []string, records ...resource.Record) {
	b.Helper()
	why := b.kind.Parting()
	for i, r := range records {
		if got, err := why(ctx, r); err != nil || got != says[i] {
			b.Errorf("of %s: %q, %v; want %q", r.Key, got, err, says[i])
		}
	}
}

func TestAPartingSeesWhatADirectoryHoldsWhereItIs(t *testing.T) {
	b := newBench(t)
	b.mkdir("/data", 0o755)
	outside := t.TempDir()
	b.link("/srv", "/data") // of this root, wherever that is
	full := b.apply(want(t, `{"path":"/srv/full","directory":true}`), nil)
	b.write("/data/full/theirs", "1", 0o644)
	left := b.apply(want(t, `{"path":"/etc/left","directory":true}`), nil)
	in := b.apply(want(t, `{"path":"/etc/left/sub/in","content":"1"}`), nil)
	b.parts([]string{notEmpty, "", ""}, full, in, left)

	// What the host made is a link now, to a directory with nothing in it.
	b.must(os.RemoveAll(b.path("/etc/left/sub")))
	b.must(os.Symlink(outside, b.path("/etc/left/sub")))
	made := record(want(t, `{"path":"/etc/left/made/in","content":"1"}`), []byte(`{"kind":"nothing","parents":["/etc/left/sub"]}`))
	b.parts([]string{"", notEmpty}, made, left)
}

// Of a directory with very much in it no more is read than the first that stays.
func TestAPartingStopsAtTheFirstThatStays(t *testing.T) {
	b := newBench(t)
	dir := b.apply(want(t, `{"path":"/etc/d","directory":true}`), nil)
	for i := range 5000 {
		b.must(os.WriteFile(b.path(fmt.Sprintf("/etc/d/%d", i)), nil, 0o600))
	}
	allocations := testing.AllocsPerRun(5, func() { b.parts([]string{notEmpty}, dir) })
	if allocations > 2000 {
		t.Errorf("it takes %v allocations", allocations)
	}
	// And to the end where all that it holds goes as well.
	all := b.apply(want(t, `{"path":"/etc/all","directory":true}`), nil)
	says, records := []string{""}, []resource.Record{all}
	for i := range portion + 10 {
		r := b.apply(want(t, fmt.Sprintf(`{"path":"/etc/all/%d","content":"1"}`, i)), nil)
		says, records = append(says, ""), append([]resource.Record{r}, records...)
	}
	b.parts(says, records...)
}
