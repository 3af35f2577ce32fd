package supervise

import (
	"os"
	"os/exec"
	"testing"
)

func TestR02DetachedShimIsUpOrNeverWillBe(t *testing.T) {
	b := newBench(t, "live")
	b.write()
	detach := func() {
		t.Helper()
		if out, err := exec.Command(os.Args[0], "shim", "--detach", "--root", b.root, "test").CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	detach()
	first, err := Shim(b.dir)
	if err != nil || first == nil {
		t.Fatalf("found %v, %v", first, err)
	}
	defer first.Close()
	for range 5 {
		detach()
	}
	if err := first.Signal(15); err != nil {
		t.Fatal(err)
	}
	b.wait(first)
	if h, err := Shim(b.dir); h != nil || err != nil {
		t.Errorf("one of those that came too late is up: %+v, %v", h, err)
	}
}
