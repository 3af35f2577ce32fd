package command

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/admin"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/admission"
	"github.com/nox-mesh/nox-mesh/internal/cli"
)

func (a *app) tokenList() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "list tokens, and what a host would be told now",
		Long: `list prints every token that was made: until when it is good, who holds its
places (a place that is only reserved says so), and the answer that a new host
would get with it now.`,
		Example: "  mesh-controller token list\n  mesh-controller token list --json",
		Args:    exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			cl, err := a.client()
			if err != nil {
				return err
			}
			ts, err := admin.TokenList.Ask(c.Context(), cl, admin.None{})
			if err != nil {
				return err
			}
			if a.json {
				return cli.JSON(a.std.Out, ts)
			}
			var rows [][]string
			for _, t := range ts {
				answer := string(t.Code)
				switch {
				case answer == "" && t.Pending:
					answer = "pending"
				case answer == "":
					answer = "admitted"
				}
				rows = append(rows, []string{
					t.ID, answer, fmt.Sprintf("%d/%d", len(t.Holders), t.Uses), t.Expires.Format(time.RFC3339), t.Name,
					strings.Join(t.Tags, ","), holders(t.Holders),
				})
			}
			return a.table([]string{"TOKEN", "ANSWER", "USED", "EXPIRES", "NAME", "TAGS", "NODES"}, rows)
		},
	}
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
