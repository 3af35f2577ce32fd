package publisher

import (
	"context"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/nox-mesh/nox-mesh/internal/clock"
)

// needs skips the test unless the programs are here.
func needs(t *testing.T, programs ...string) {
	t.Helper()
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			t.Skipf("%s is not here", p)
		}
	}
}

// TestAKillAtAnyInstant kills a build, and changes of a repository, at random
// instants; the next run gives the bytes of an undisturbed one.
func TestAKillAtAnyInstant(t *testing.T) {
	d := newDesk(t)
	d.ok(build("one", one)...)
	d.ok(build("two", two)...)
	repo, www := "repo", "www"
	add := func(from, version string) []string {
		return []string{"repo", "add", "--keys", "keys", "--keep", "2", repo,
			from + "/arch/x86_64/nox-mesh-host-" + version + "-1-x86_64.pkg.tar.zst",
			from + "/arch/x86_64/nox-mesh-keyring-" + version + "-1-any.pkg.tar.zst"}
	}
	fresh := func() {
		for _, name := range []string{repo, www} {
			must(t, os.RemoveAll(d.path(name)))
		}
		d.ok(add("one", one)...)
		d.ok("repo", "publish", "--trust", "keys", "--to", www, repo)
	}
	publish := []string{"repo", "publish", "--trust", "keys", "--to", www, repo}
	fresh()
	d.ok(add("two", two)...)
	d.ok(publish...)
	after := d.tree(www)
	for _, c := range []struct {
		name, dir string
		before    func()
		args      []string
		rounds    int
		want      map[string]string
	}{
		{"build", "dist", func() { d.release("dist", one) }, build("dist", two), 4, shared.clean[two]},
		{"repo add", repo, fresh, add("two", two), 8, after},
		{"repo publish", www, func() { fresh(); d.ok(add("two", two)...) }, publish, 8, after},
	} {
		c.before()
		begin := clock.System.Now()
		d.ok(c.args...)
		long := clock.System.Now().Sub(begin)
		killed := 0
		for range c.rounds {
			c.before()
			old := d.tree(c.dir)
			at := time.Duration(rand.Int64N(int64(long)))
			ctx, stop := context.WithTimeout(t.Context(), at)
			r := d.command(ctx, shared.program, c.args...)
			stop()
			if r.code != 0 {
				killed++
			}
			if got := d.tree(c.dir); !same(got, old) && !same(got, c.want) {
				t.Errorf("%s, killed after %v: neither the old nor the new one", c.name, at)
			}
			d.ok(c.args...)
			if !same(d.tree(c.dir), c.want) {
				t.Errorf("%s, killed after %v, then again: other bytes", c.name, at)
			}
			if _, err := os.Lstat(d.path("." + c.dir + ".next")); err == nil {
				t.Errorf("%s, killed after %v, then again: the half directory is still there", c.name, at)
			}
		}
		if killed == 0 {
			t.Errorf("%s was never killed", c.name)
		}
	}
}

func same(a, b map[string]string) bool {
	if len(a) != len(b) {
		return false
	}
	for name, text := range a {
		if other, ok := b[name]; !ok || other != text {
			return false
		}
	}
	return true
}
