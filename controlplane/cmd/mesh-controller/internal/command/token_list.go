package command

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/admin"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/admission"
	"github.com/nox-mesh/nox-mesh/host/link"
	"github.com/nox-mesh/nox-mesh/internal/cli"
	"github.com/nox-mesh/nox-mesh/internal/clock"
)

func (a *app) tokenList() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List tokens, and what a host would be told now",
		Long: `List every token that was made: what a host that came with it now would be told,
how many places it had, and who holds them (a place that is only reserved says
so).`,
		Example: "  mesh-controller token list\n  mesh-controller token list --json",
		RunE: func(c *cobra.Command, _ []string) error {
			return ask(c.Context(), a, admin.TokenList.Ask, admin.None{}, a.printTokens)
		},
	}
}

func (a *app) printTokens(ts []admission.TokenStatus) error {
	now := clock.System.Now()
	var rows [][]string
	for _, t := range ts {
		rows = append(rows, []string{
			t.ID, tokenWords(t, now), fmt.Sprintf("%d/%d", len(t.Holders), t.Uses), cli.Ago(now, t.Created), t.Name,
			strings.Join(t.Tags, ","), holders(t.Holders),
		})
	}
	return a.table([]string{"TOKEN", "ANSWER", "USED", "MADE", "NAME", "TAGS", "NODES"}, rows)
}

// tokenWords says whether a token is good: the verdict is the control plane's,
// the words are for a person.
func tokenWords(t admission.TokenStatus, now time.Time) string {
	switch t.Code {
	case "":
		words := fmt.Sprintf("good: %s left, %s", cli.Count(t.Left, "use", "uses"), cli.Span(t.Expires.Sub(now)))
		if t.Pending {
			words += "; a person admits"
		}
		return words
	case link.TokenRevoked:
		return "revoked " + cli.Ago(now, t.Revoked)
	case link.TokenExpired:
		return "expired " + cli.Ago(now, t.Expires)
	case link.TokenUsed:
		return "used up"
	}
	return string(t.Code)
}

func holders(hs []admission.Holder) string {
	const most = 3
	var out []string
	for i, h := range hs {
		if i == most {
			out = append(out, fmt.Sprintf("and %d more", len(hs)-most))
			break
		}
		name := h.Name
		if name == "" {
			name = h.Hostname
		}
		if !h.Used {
			name += " (reserved)"
		}
		out = append(out, name)
	}
	return strings.Join(out, ", ")
}
