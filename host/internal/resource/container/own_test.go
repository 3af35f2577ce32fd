package container

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

func TestHostsOwnIsRefusedByWhateverPath(t *testing.T) {
	b := newBench(t, "podman")
	l := b.layout
	must(t, os.MkdirAll(filepath.Join(l.HostState(), "deep"), 0o700))
	must(t, os.MkdirAll(l.Path("/srv"), 0o755))
	must(t, os.MkdirAll(l.Path("/run"), 0o755))
	must(t, os.WriteFile(l.HostStore(), []byte("x"), 0o600))
	must(t, os.Symlink("/var/lib/nox-mesh", l.Path("/srv/state")))
	must(t, os.Symlink("../var/lib", l.Path("/srv/lib")))
	must(t, os.Link(l.HostStore(), l.Path("/srv/hard")))
	for _, m := range []string{
		`{"target":"/x","path":"/srv/state"}`,
		`{"target":"/x","path":"/srv/state/host/deep","read_only":true}`,
		`{"target":"/x","path":"/srv/lib"}`,
		`{"target":"/x","path":"/srv/lib/nox-mesh"}`,
		`{"target":"/x","path":"/srv/hard"}`,
		`{"target":"/x","path":"/run","read_only":true}`,
		`{"target":"/x","path":"/","read_only":true}`, // where /run is no mount of its own
	} {
		w := wish(t, spec(imageDigest(0), `,"mounts":[`+m+`]`))
		if err := b.kind.Review(w.Resource); fault.KindOf(err) != fault.Refused || !strings.Contains(err.Error(), "mounts[0].path: ") {
			t.Errorf("%s: %v", m, err)
		}
		if said := b.fails(w, nil); !strings.Contains(said, "host's own") {
			t.Errorf("%s: %v", m, said)
		}
	}
	w := wish(t, spec(imageDigest(0), `,"env_from":"/srv/hard"`))
	if err := b.kind.Review(w.Resource); fault.KindOf(err) != fault.Refused || !strings.Contains(err.Error(), "env_from: ") {
		t.Errorf("%v", err)
	}
	// To be seen, without what is mounted below it and the state, is allowed.
	w = wish(t, spec(imageDigest(0), `,"mounts":[{"target":"/x","path":"/srv/lib","read_only":true},{"target":"/y","path":"/var","read_only":true},{"target":"/z","path":"/srv"}]`))
	if err := b.kind.Review(w.Resource); err != nil {
		t.Error(err)
	}
	b.apply(w, nil)
	h := b.fake.containers()["web"].Body.HostConfig
	var got []string
	for _, m := range h.Mounts {
		got = append(got, fmt.Sprint(strings.TrimPrefix(m.Source, l.Root), " ", m.Target, " ", m.ReadOnly, " ", m.BindOptions != nil && m.BindOptions.NonRecursive))
	}
	want := []string{
		"/srv/lib /x true true", "/var/lib/nox-mesh/empty /x/nox-mesh true false",
		"/var /y true true", "/var/lib/nox-mesh/empty /y/lib/nox-mesh true false", "/srv /z false false",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if es, err := os.ReadDir(l.Path("/var/lib/nox-mesh/empty")); err != nil || len(es) > 0 {
		t.Errorf("what hides the state: %v, %v", es, err)
	}
}
