package file

import (
	"os"
	"testing"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

func TestF02RootsLinksOnTheWayAreFollowedBelowTheRoot(t *testing.T) {
	for name, target := range map[string]string{
		"absolute":             "/run",
		"relative":             "../run",
		"above the root":       "../../../../../../../../run",
		"dots":                 "./../var/.././run/.",
		"through another link": "/var/second",
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.mkdir("/run/app", 0o755)
			b.mkdir("/var", 0o755)
			b.link("/var/second", "../run")
			b.link("/var/run", target)
			rec := b.apply(want(t, `{"path":"/var/run/app/it","content":"x"}`), nil)
			b.text("/run/app/it", "x")
			b.remove(rec, "removed", "")
			b.holds("/run/app", "")
		})
	}
}

func TestF02NoLinkLeadsOutOfTheRoot(t *testing.T) {
	outside := t.TempDir()
	b := newBench(t)
	b.link("/etc/out", outside)
	b.fails(want(t, `{"path":"/etc/out/it","content":"x"}`), `the symlink "/etc/out" on its way leads to`, "does not exist")
	if es, _ := os.ReadDir(outside); len(es) > 0 {
		t.Errorf("it was written outside the root: %v", es)
	}
}

func TestF02ALoopOfLinksIsAnError(t *testing.T) {
	b := newBench(t)
	b.link("/etc/a", "b")
	b.link("/etc/b", "a")
	b.fails(want(t, `{"path":"/etc/a/it","content":"x"}`), "too many levels of symbolic links")
}

func TestF02ALinkWhereOthersMayWriteIsNotFollowed(t *testing.T) {
	for _, mode := range []os.FileMode{0o777, 0o775, 0o777 | os.ModeSticky} {
		b := newBench(t)
		b.mkdir("/tmp", 0o755)
		b.link("/tmp/link", "/etc")
		b.mkdir("/tmp", mode)
		w := want(t, `{"path":"/tmp/link/it","content":"x"}`)
		_, err := b.try(w, nil)
		saysAll(t, err, `the symlink "/tmp/link"`, "others may write")
		if fault.KindOf(err) != fault.Refused || fault.RemedyOf(err) == "" {
			t.Errorf("kind %v, remedy %q", fault.KindOf(err), fault.RemedyOf(err))
		}
		b.holds("/etc", "")
	}
}

func TestF02AUsersLinkDoesNotLeadRoot(t *testing.T) {
	needRoot(t)
	b := newBench(t)
	b.mkdir("/home/bob", 0o755)
	b.must(os.Chown(b.path("/home/bob"), 4711, 4711))
	b.link("/home/bob/.config", "/etc")
	w := want(t, `{"path":"/home/bob/.config/it","content":"x"}`)
	b.fails(w, `the symlink "/home/bob/.config"`, "others may write") // root's link, bob's directory
	b.must(os.Lchown(b.path("/home/bob/.config"), 4711, 4711))
	b.fails(w, `the symlink "/home/bob/.config"`, "belongs to user 4711")
	b.holds("/etc", "")
	b.apply(want(t, `{"path":"/home/bob/it","owner":"4711","content":"x"}`), nil) // the way to it is a directory
}

// Somebody flips the name and its directory between a thing and a symlink to a
// place outside, as fast as he can, while the host writes.
func TestF02SwappingNamesLeadsNobodyOutside(t *testing.T) {
	outside := t.TempDir()
	b := newBench(t)
	b.write("/etc/victim", "theirs", 0o600)
	b.mkdir("/home/real", 0o755)
	b.link("/home/link", outside)
	b.must(os.Rename(b.path("/home/real"), b.path("/home/dir")))

	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
			}
			_ = os.Rename(b.path("/home/dir"), b.path("/home/real"))
			_ = os.Rename(b.path("/home/link"), b.path("/home/dir"))
			_ = os.Rename(b.path("/home/dir"), b.path("/home/link"))
			_ = os.Rename(b.path("/home/real"), b.path("/home/dir"))
			_ = os.Remove(b.path("/home/dir/it"))
			_ = os.Symlink(b.path("/etc/victim"), b.path("/home/dir/it"))
		}
	}()
	written := 0
	for range 300 {
		if _, err := b.try(want(t, `{"path":"/home/dir/it","mode":"0666","content":"x"}`), nil); err == nil {
			written++
		}
	}
	close(stop)
	<-done
	t.Logf("written %d times of 300", written)
	if es, _ := os.ReadDir(outside); len(es) > 0 {
		t.Errorf("it was written outside the root: %v", es)
	}
	b.text("/etc/victim", "theirs")
	b.mode("/etc/victim", 0o600)
}
