package admission

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/claim"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/name"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/state"
	"github.com/nox-mesh/nox-mesh/host/profile"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// A Policy is the operator's rules of admission, in order: the first that holds
// decides. Where none does the token decides, and where the token lets a person
// decide a rule cannot admit. A rule gives no name and no tag: it holds by what a
// machine says about itself, and a tag is somebody else's word.
type Policy []Rule

// A Verdict is what a rule decides.
type Verdict string

// The verdicts.
const (
	Admit  Verdict = "admit"
	Wait   Verdict = "pending"
	Refuse Verdict = "refuse"
)

// A Rule holds when all that it asks does; one that asks nothing always holds.
type Rule struct {
	Decision Verdict
	// Hostname is a pattern for the machine's, as a token's --name is. Tag is one of
	// the token's, Token its id.
	Hostname, Tag, Token string
	Profile              []claim.Claim
	// Reason is what people are told, the machine too.
	Reason string
}

// maxReason bounds a reason, in bytes.
const maxReason = 200

// Check refuses a rule that could not be meant; the error begins with the key.
func (r Rule) Check() error {
	switch {
	case r.Decision == "":
		return fault.Refusedf("decision: there is none; it is admit, pending or refuse")
	case r.Decision != Admit && r.Decision != Wait && r.Decision != Refuse:
		return fault.Refusedf("decision: %q is none; it is admit, pending or refuse", r.Decision)
	case strings.Trim(r.Hostname, patternLetters) != "":
		return fault.Refusedf("hostname: %q is no pattern; it is of a-z, 0-9, '-', '*' and '?'", r.Hostname)
	case r.Tag != "" && !name.Valid(r.Tag):
		return fault.Refusedf("tag: %q is none; a tag is %s", r.Tag, name.Rule)
	}
	return checkReason(r.Reason)
}

func checkReason(s string) error {
	if len(s) > maxReason || strings.ContainsFunc(s, func(c rune) bool { return !unicode.IsPrint(c) }) {
		return fault.Refusedf("reason: it is one line of at most %d bytes", maxReason)
	}
	return nil
}

func (r Rule) holds(t *state.Token, p *profile.Profile) bool {
	if r.Hostname != "" {
		if ok, err := path.Match(r.Hostname, name.Of(p.Hostname)); err != nil || !ok {
			return false
		}
	}
	if r.Token != "" && r.Token != t.ID {
		return false
	}
	if r.Tag != "" && !slices.Contains(t.Tags, r.Tag) {
		return false
	}
	for _, c := range r.Profile {
		if !c.Holds(p) {
			return false
		}
	}
	return true
}

// When says what the rule asks, a phrase for each.
func (r Rule) When() []string {
	out := []string{}
	for _, x := range []struct{ key, value string }{{"hostname", r.Hostname}, {"tag", r.Tag}, {"token", r.Token}} {
		if x.value != "" {
			out = append(out, x.key+"="+x.value)
		}
	}
	for _, c := range r.Profile {
		out = append(out, c.String())
	}
	return out
}

// judge returns what becomes of a machine, and why.
func (p Policy) judge(t *state.Token, of *profile.Profile) (v Verdict, reason string) {
	for i, r := range p {
		if !r.holds(t, of) {
			continue
		}
		if r.Decision == Admit && t.Pending {
			return Wait, fmt.Sprintf("token %q lets a person decide, though admission rule %d admits", t.ID, i+1)
		}
		verb := map[Verdict]string{Admit: "admits", Wait: "lets a person decide", Refuse: "refuses"}[r.Decision]
		reason = fmt.Sprintf("admission rule %d %s", i+1, verb)
		if r.Reason != "" {
			reason += ": " + r.Reason
		}
		return r.Decision, reason
	}
	if t.Pending {
		return Wait, fmt.Sprintf("token %q lets a person decide", t.ID)
	}
	return Admit, fmt.Sprintf("token %q admits", t.ID)
}
