package config

import (
	"reflect"
	"strings"
	"testing"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/admission"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

func TestAdmissionRulesAreReadInOrder(t *testing.T) {
	c, err := Parse([]byte(`listen = ":1"
[[admission]]
decision = "refuse"
hostname = "web-*"
profile.container = "lxc"
profile.architecture = "amd64"
reason = "no containers"
[[admission]]
decision = "admit"
tag = "web"
token = "0123456789abcdef"
[[admission]]
decision = "pending"
`))
	if err != nil || len(c.Admission) != 3 {
		t.Fatalf("%+v, %v", c, err)
	}
	for i, want := range []struct {
		decision admission.Verdict
		when     string
		reason   string
	}{
		{"refuse", "hostname=web-* profile.architecture=x86_64 profile.container=lxc", "no containers"},
		{"admit", "tag=web token=0123456789abcdef", ""},
		{"pending", "", ""},
	} {
		if r := c.Admission[i]; r.Decision != want.decision || strings.Join(r.When(), " ") != want.when || r.Reason != want.reason {
			t.Errorf("rule %d: %+v", i+1, r)
		}
	}
	if c, err := Parse(nil); err != nil || !reflect.DeepEqual(c.Admission, admission.Policy(nil)) {
		t.Errorf("no rules: %+v, %v", c, err)
	}
}

func TestABrokenRuleIsNamedWithItsLine(t *testing.T) {
	const ok = "listen = ':1'\n\n[[admission]] # one\ndecision = 'admit'\n" // four lines
	for name, x := range map[string]struct{ doc, want string }{
		"no decision":     {ok + "[[admission]]\ntag = 'a'\n", "line 5: admission rule 2: decision: there is none"},
		"unknown one":     {ok + "[[admission]]\ntag = 'a'\ndecision = 'deny'\n", `line 7: admission rule 2: decision: "deny"`},
		"unknown key":     {ok + "hostnam = 'a'\n", `line 5: admission rule 1: the key "hostnam"`},
		"the first one's": {"[[admission]]\ndecision = 'admit'\nhostnam = 'a'\n[[admission]]\ndecision = 'admit'\nhostname = 'a'\n", `line 3: admission rule 1: the key "hostnam"`},
		"unknown claim":   {ok + "\n[admission.profile]\ninit = 'systemd'\ndistro = 'arch'\n", "line 8: admission rule 1: profile.distro: a profile has no"},
		"claim's type":    {ok + "profile.init = 1\n", "line 5: admission rule 1: profile.init: 1 is not a string"},
		"profile's type":  {ok + "profile = 'x'\n", "line 5: admission rule 1: profile: is no table"},
		"type":            {ok + "tag = ['a']\n", "line 5: admission rule 1: tag: [a] is not a string"},
		"empty":           {ok + "tag = ''\n", "line 5: admission rule 1: tag: is empty"},
		"bad tag":         {ok + "tag = 'A B'\n", `line 5: admission rule 1: tag: "A B"`},
		"bad pattern":     {ok + "hostname = 'web-[1]'\n", `line 5: admission rule 1: hostname: "web-[1]"`},
		"long reason":     {ok + "reason = '" + strings.Repeat("x", 300) + "'\n", "line 5: admission rule 1: reason: it is one line"},
		"two lines":       {ok + "reason = '''a\nb'''\n", "line 6: admission rule 1: reason: it is one line"},
		"one table":       {"[admission]\ndecision = 'admit'\n", "line 1: admission: is no list of tables"},
		"syntax":          {ok + "tag = \n", "line 5"},
		"other key":       {ok + "[[admissions]]\n", `line 5: the key "admissions" is not known`},
		"listen":          {"# x\nlisten = 'x'", `line 2: listen: "x" is not HOST:PORT`},
	} {
		_, err := Parse([]byte(x.doc))
		if err == nil || !strings.Contains(err.Error(), x.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q", name, err, x.want)
		}
		if name != "syntax" && fault.KindOf(err) != fault.Refused {
			t.Errorf("%s: kind %v", name, fault.KindOf(err))
		}
	}
}
