//go:build machine

package packages

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/host/internal/resource"
	"github.com/nox-mesh/nox-mesh/host/internal/resource/packages/command"
	"github.com/nox-mesh/nox-mesh/internal/layout"
)

// mutating are the calls at which a manager is killed.
var mutating = []string{"openat", "write", "mkdir", "unlink", "unlinkat", "rmdir", "rename", "symlink", "chmod", "fchmod", "fchown", "fsync", "utimensat", "ftruncate"}

// strace runs the manager traced.
func strace(args ...string) func(command.Line) command.Line {
	return func(l command.Line) command.Line {
		return command.Line{Path: "/usr/bin/strace", Args: append(append([]string{"-f", "-qq"}, args...), append([]string{l.Path}, l.Args...)...), Env: l.Env}
	}
}

// writes counts the calls of one run that change something, by name. Of those
// that open, only those that write count, and of those that write, only those to
// files below the root: killed at any other the machine is as it was a moment
// before or after.
func (w *world) writes(do func()) map[string][]int {
	w.Helper()
	log := filepath.Join(w.TempDir(), "trace")
	w.through = strace("-y", "-s", "0", "-o", log, "-e", "trace="+strings.Join(mutating, ","))
	do()
	w.through = nil
	b, err := os.ReadFile(log)
	if err != nil {
		w.Fatal(err)
	}
	seen, at := map[string]int{}, map[string][]int{}
	for line := range strings.Lines(string(b)) {
		pid, rest, _ := strings.Cut(line, " ")
		call, args, ok := strings.Cut(strings.TrimSpace(rest), "(")
		if !ok {
			continue
		}
		seen[pid+call]++ // each process counts by itself, and the first to come so far is killed
		n := seen[pid+call]
		switch {
		case slices.Contains(at[call], n):
		case call == "openat" && !strings.Contains(args, "O_CREAT"):
		case call == "write" && !strings.Contains(args, w.l.Root):
		default:
			at[call] = append(at[call], n)
		}
	}
	return at
}

// P-02. Each of install, upgrade, repair and removal is killed at each call that
// changes something; the next pass makes it good, unattended.
func TestP02KilledAnywhereConverges(t *testing.T) {
	if _, err := exec.LookPath("strace"); err != nil {
		t.Skip("strace is not installed")
	}
	one, two := hello("1"), hello("2")
	one.after = `echo "done ${first:-yes}" >> /after`
	two.after = one.after
	for _, s := range sorts {
		for _, work := range []string{"install", "upgrade", "repair", "remove"} {
			t.Run(s.name+"/"+work, func(t *testing.T) {
				t.Parallel()
				// begin makes a world in which the work is to be done.
				begin := func(t testing.TB) (w *world, do func() error, want resource.Want, rec *resource.Record) {
					w = newWorld(t, s)
					want = w.wish(one)
					if work != "install" {
						r := w.apply(want, nil)
						rec = &r
					}
					_ = os.Remove(w.l.Path("/after"))
					switch work {
					case "upgrade":
						want = w.wish(two)
					case "repair":
						put(t, w.l.Path("/usr/bin/hello"), "damaged", 0o755)
					case "remove":
						return w, func() error { _, _, err := w.kind.Remove(w.ctx(), *rec); return err }, want, rec
					}
					return w, func() error { return w.kind.Apply(w.ctx(), want, rec, w.check(want, rec)) }, want, rec
				}
				w, do, _, _ := begin(t)
				at := w.writes(func() {
					if err := do(); err != nil {
						t.Fatal(err)
					}
				})
				// All of them take minutes; NOX_EVERY_KILL=1 asks for them.
				kills, step := 0, 9
				switch {
				case os.Getenv("NOX_EVERY_KILL") == "1":
					step = 1
				case s.name == "dpkg":
					step = 29 // apt is slow, and leaves the repair to dpkg
				}
				n := 0
				for _, call := range mutating {
					for _, i := range at[call] {
						if n++; n%step != 0 {
							continue
						}
						w, do, want, rec := begin(t)
						w.through = strace("-o", "/dev/null", "-e", "trace="+call, "-e", fmt.Sprintf("inject=%s:signal=KILL:when=%d", call, i))
						err := do()
						w.through = nil
						if err != nil {
							kills++
						}
						where := fmt.Sprintf("killed at %s %d (%v)", call, i, err)
						if work == "remove" {
							if _, _, err := w.kind.Remove(w.ctx(), *rec); err != nil {
								t.Errorf("%s: %v", where, err)
							}
							w.gone("/usr/bin/hello")
							w.gone("/usr/share/hello")
							w.tidy()
							continue
						}
						st := w.check(want, rec)
						if st.Foreign {
							t.Errorf("%s: it is called foreign: %+v", where, st)
						}
						if !st.Same {
							if err := w.kind.Apply(w.ctx(), want, rec, st); err != nil {
								t.Errorf("%s: the next pass says %v", where, err)
							}
						}
						now := record(want, resource.State{})
						w.same(want, &now)
						after, _ := os.ReadFile(w.l.Path("/after"))
						first := "done yes"
						if work != "install" {
							first = "done no"
						}
						if !strings.Contains(string(after), first) {
							t.Errorf("%s: the scriptlet said %q, want %q", where, after, first)
						}
						w.remove(now, declaration.Removed)
						w.gone("/usr/bin/hello")
						w.tidy()
						if t.Failed() {
							return
						}
					}
				}
				t.Logf("%d kills", kills)
				if kills == 0 {
					t.Error("it was never killed: nothing was tested")
				}
			})
		}
	}
}

// P-03: what a dead pacman left.
func TestP03AbandonedLocks(t *testing.T) {
	w := newWorld(t, pacmanSort)
	lock := w.l.Path("/var/lib/pacman/db.lck")
	one := w.wish(hello("1"))
	put(t, lock, "", 0o444)
	old := time.Unix(1, 0)
	if err := os.Chtimes(lock, old, old); err != nil {
		t.Fatal(err)
	}
	w.kind.patience = time.Hour // older than the boot: at once
	rec := w.apply(one, nil)
	put(t, lock, "", 0o444)
	w.kind.patience = 300 * time.Millisecond // younger: after it was waited for
	begun := time.Now()
	w.remove(rec, declaration.Removed)
	if time.Since(begun) < w.kind.patience {
		t.Error("it was not waited for")
	}
	w.tidy()
}

// overdue is a context whose deadline is over when the one in it ends.
type overdue struct{ context.Context }

func (o overdue) Err() error {
	if o.Context.Err() == nil {
		return nil
	}
	return context.DeadlineExceeded
}

func TestP07OneThatHangsFloodsAndAsks(t *testing.T) {
	each(t, func(w *world) {
		r := hello("1")
		r.after = `read answer || true; if [ -e /go ]; then exit 0; fi; echo asked > /begun; while :; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; done`
		one := w.wish(r)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			wait(t, func() bool { _, err := os.Stat(w.l.Path("/begun")); return err == nil })
			time.AfterFunc(300*time.Millisecond, cancel)
		}()
		w.failsIn(overdue{ctx}, one, nil, "did not end in time", "xxxx")
		put(t, w.l.Path("/go"), "", 0o644)
		w.apply(one, nil)
		w.remove(record(one, resource.State{}), declaration.Removed)
		w.tidy()
	})
}

const hostVariable = "NOX_PACKAGES_TEST_ROOT"

// P-02, the other way round: the host dies, and the manager does its work.
func TestP02TheManagerOutlivesTheHost(t *testing.T) {
	for _, s := range sorts {
		t.Run(s.name, func(t *testing.T) {
			s.require(t)
			r := hello("1")
			r.after = `echo begun > /begun; until [ -e /go ]; do sleep 0.05; done; echo said; echo "$first" > /ended`
			if root := os.Getenv(hostVariable); root != "" {
				w := worldAt(t, s, layout.Layout{Root: root})
				w.apply(w.wish(r), nil)
				return
			}
			w := newWorld(t, s)
			host := exec.Command(os.Args[0], "-test.run=^TestP02TheManagerOutlivesTheHost$/^"+s.name+"$")
			host.Env = append(os.Environ(), hostVariable+"="+w.l.Root)
			if err := host.Start(); err != nil {
				t.Fatal(err)
			}
			wait(t, func() bool { _, err := os.Stat(w.l.Path("/begun")); return err == nil })
			if err := host.Process.Signal(syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			_ = host.Wait()
			one := w.wish(r)
			w.fails(one, nil, "in use by process ") // it is at it
			put(t, w.l.Path("/go"), "", 0o644)
			wait(t, func() bool { l, err := w.kind.Manager.Lock(); return err == nil && l.By == "" })
			w.text("/ended", "\n")
			if st := w.check(one, nil); st.Foreign || len(st.Differences) != 1 || st.Differences[0] != interrupted {
				t.Errorf("%+v", st)
			}
			w.apply(one, nil)
			w.remove(record(one, resource.State{}), declaration.Removed)
			w.tidy()
		})
	}
}

// wait waits for what another process does, which tells nobody.
func wait(t *testing.T, is func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	end := time.After(30 * time.Second)
	for !is() {
		select {
		case <-tick.C:
		case <-end:
			t.Fatal("it never came")
		}
	}
}
