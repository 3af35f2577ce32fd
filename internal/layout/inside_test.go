package layout

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

func TestInsideRefusesEveryLinkThatLeadsOut(t *testing.T) {
	for _, c := range []struct{ link, target, say string }{
		{"var", "OUT", "leads out"},
		{"var/lib", "OUT", "leads out"},
		{"var/lib/nox-mesh", "OUT", "leads out"},
		{"var/lib/nox-mesh", "../../..", "leads out"},
		{"var/lib/nox-mesh", "OUT/not-there", "to nowhere"},
		{"var/lib/nox-mesh/host", "OUT", "leads out"},
		{"var/lib/nox-mesh/host/store.db", "OUT/store.db", "to nowhere"},
		{"var/lib/nox-mesh/content/blobs/sha256", "OUT", "leads out"},
		{"run", "OUT", "leads out"},
		{"run/nox-mesh", "OUT", "leads out"},
		{"etc", "OUT", "leads out"},
		{"var/lib/nox-mesh", "../state", ""},
		{"var/lib/nox-mesh/content", "../../../state", ""},
		{"elsewhere", "OUT", ""},
	} {
		top := t.TempDir()
		out := filepath.Join(top, "out")
		l := Layout{Root: filepath.Join(top, "image")}
		link := l.Path(c.link)
		for _, dir := range []string{out, filepath.Dir(link), l.Path("/var/state"), l.Path("/state")} {
			if c.link == "var" && strings.HasPrefix(dir, l.Path("/var")) {
				continue
			}
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Symlink(strings.Replace(c.target, "OUT", out, 1), link); err != nil {
			t.Fatal(err)
		}
		err := l.Inside(l.HostConfig())
		switch {
		case c.say == "" && err != nil:
			t.Errorf("%s -> %s: %v", c.link, c.target, err)
		case c.say != "" && (fault.KindOf(err) != fault.Refused || !strings.Contains(err.Error(), c.say)):
			t.Errorf("%s -> %s: %v", c.link, c.target, err)
		}
	}
	if err := (Layout{Root: filepath.Join(t.TempDir(), "new")}).Inside(); err != nil {
		t.Errorf("a root that is not there yet: %v", err)
	}
}
