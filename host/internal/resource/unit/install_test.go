package unit

import (
	"slices"
	"strings"
	"testing"
)

func TestWhatEnablingMakes(t *testing.T) {
	for text, c := range map[string]struct {
		name, want string
		exact      bool
	}{
		"[Install]\nWantedBy=a.target b.target\nRequiredBy=c.target": {"x.service", "a.target.wants/x.service b.target.wants/x.service c.target.requires/x.service", true},
		"[Service]\nWantedBy=a.target":                               {"x.service", "", true},
		"[Install]\nWantedBy=a.target\nWantedBy=\nWantedBy=b.target": {"x.service", "b.target.wants/x.service", true},
		"[Install]\nWantedBy=a.target \\\n# in between\n b.target":   {"x.service", "a.target.wants/x.service b.target.wants/x.service", true},
		"[Install]\n;WantedBy=a.target\nAlias=y.service x.service":   {"x.service", "y.service", true},
		"[Install]\nWantedBy=%p.target %i.target":                    {"x@1.service", "1.target.wants/x@1.service x.target.wants/x@1.service", true},
		"[Install]\nWantedBy=%H.target a.target":                     {"x.service", "a.target.wants/x.service", false},
		"[Install]\nWantedBy=a.target\nDefaultInstance=d":            {"x@.service", "a.target.wants/x@d.service", false},
		"[Install]\nWantedBy=a.target":                               {"x@.service", "", false},
		"[Install]\r\nWantedBy=a.target\r\n":                         {"x.service", "a.target.wants/x.service", true},
	} {
		must, _, exact := installOf(text).links(c.name)
		if got := strings.Join(must, " "); got != c.want || exact != c.exact {
			t.Errorf("%q: %q, %v", text, got, exact)
		}
	}
	_, may, _ := installOf("[Install]\nUpheldBy=a.target").links("x.service")
	if !slices.Equal(may, []string{"a.target.upholds/x.service"}) {
		t.Errorf("%q", may)
	}
}
