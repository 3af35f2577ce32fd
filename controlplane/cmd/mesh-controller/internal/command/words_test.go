package command

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/admin"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/admission"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/module"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/state"
	"github.com/nox-mesh/nox-mesh/host/link"
	"github.com/nox-mesh/nox-mesh/internal/cli"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestATokenIsSaidToBeGoodOrWhyNot(t *testing.T) {
	soon, past := noon.Add(58*time.Minute), noon.Add(-4*time.Minute)
	for want, s := range map[string]admission.TokenStatus{
		"good: 1 use left, 58 min":                   {Left: 1, Expires: soon},
		"good: 2 uses left, 58 min; a person admits": {Left: 2, Expires: soon, Pending: true},
		"used up":           {Code: link.TokenUsed, Expires: soon},
		"expired 4 min ago": {Code: link.TokenExpired, Left: 1, Expires: past},
		"revoked 4 min ago": {Code: link.TokenRevoked, Left: 1, Expires: soon, Revoked: past},
	} {
		if got := tokenWords(s, noon); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestANodeThatDoesNotApplyIsMarked(t *testing.T) {
	n := admin.Node{Applied: 0, Wanted: 2}
	if got := appliedWords(n, noon); got != "0/2" {
		t.Errorf("%q", got)
	}
	n.Behind = noon.Add(-4 * time.Minute)
	if got, want := appliedWords(n, noon), "0/2, not applied for 4 min"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := seenWords(n, noon); got != "never connected" {
		t.Errorf("%q", got)
	}
	n.ID, n.LastSeen = strings.Repeat("a", 32), noon
	var out bytes.Buffer
	a := &app{std: cli.Stdio{Out: &out, Err: &out}}
	if err := a.printNode(admin.NodeDetail{Node: n}); err != nil || !strings.Contains(out.String(), "not applied") {
		t.Errorf("show: %s, %v", out.String(), err)
	}
}

func TestAPlanIsOneLineAThing(t *testing.T) {
	var out, said bytes.Buffer
	a := &app{std: cli.Stdio{Out: &out, Err: &said}}
	err := a.printPlan("m", module.Change{Changed: true, Version: 2, Nodes: []string{"1", "2"}, Present: 1, Plan: []module.Difference{
		{Node: "a", Appear: []string{"file:/1"}, Change: []string{"file:/2"}, Go: []string{"process:p"}}, {Node: "b"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"NODE WHAT RESOURCE", "a appears file:/1", "a changes file:/2", "a goes process:p", "b keeps everything -", ""}
	var got []string
	for line := range strings.SplitSeq(out.String(), "\n") {
		got = append(got, strings.Join(strings.Fields(line), " "))
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%q", got)
	}
	if want := "module \"m\" would be version 2, present on 1 node; 2 nodes would get a new declaration\n"; said.String() != want {
		t.Errorf("%q, want %q", said.String(), want)
	}
}

func TestWhatAMachineSaysCannotDriveATerminal(t *testing.T) {
	var out bytes.Buffer
	a := &app{std: cli.Stdio{Out: &out, Err: &out}}
	const bad = "x\x1b[2J\u009b\u202e\ny"
	n := admin.NodeDetail{Node: admin.Node{ID: strings.Repeat("0", 32), Hostname: bad, Tags: []string{bad}, Version: bad, Conflict: bad}, Modules: []string{bad}}
	n.Profile.Init = bad
	n.Grants = []*state.Grant{{Provider: bad, State: state.Revoking, Error: bad}}
	n.Failing = []admin.Failing{{Key: bad, Outcome: bad, Error: bad}}
	for _, err := range []error{
		a.printNode(n), a.printRules([]admin.Rule{{When: []string{bad}, Reason: bad}}), a.printNodes([]admin.Node{n.Node}), a.printAddresses(admin.Addresses{Addresses: []string{bad}}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if strings.ContainsAny(out.String(), "\x1b\u009b\u202e") || strings.Contains(out.String(), "\ny") {
		t.Errorf("%q", out.String())
	}
}
