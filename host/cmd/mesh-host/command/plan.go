package command

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/host/internal/apply"
	"github.com/nox-mesh/nox-mesh/host/internal/service"
	"github.com/nox-mesh/nox-mesh/internal/cli"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

func (p *program) plan() *cobra.Command {
	return &cobra.Command{
		Use:   "plan FILE",
		Short: "Say what apply would do, and change nothing",
		Long: `Say what "apply FILE" would do, and change nothing. Exits 0 when there is
nothing to do and 5 when there is something to do.

This is for a machine that is in no mesh; a node's declaration comes from its
mesh, and plan is refused there: ask "mesh-controller declare --dry-run".`,
		Example: "  mesh-host plan declaration.json\n  mesh-host plan - < declaration.json",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			doc, err := p.document(c.Context(), args[0])
			if err != nil {
				return err
			}
			return p.ask(c.Context(), func(h service.Host) error {
				steps, err := h.Plan(c.Context(), doc)
				if err != nil {
					return fmt.Errorf("cannot plan %q: %w", args[0], err)
				}
				todo := 0
				var rows [][]string
				list := []planned{}
				for _, s := range steps {
					list = append(list, planned{s, warning(s)})
					if s.Todo() {
						todo++
					} else if s.Error == "" && s.Note == "" {
						continue
					}
					what := strings.Join(s.Differences, ", ")
					if said := cmp.Or(s.Error, s.Note); said != "" {
						what = said
					}
					rows = append(rows, []string{string(s.Action), s.Key, cli.OneLine(what)})
				}
				p.warn(list)
				if err := p.print(list, func() error {
					if len(rows) == 0 {
						_, err := fmt.Fprintf(p.std.Out, "%d resources, all as declared\n", len(steps))
						return err
					}
					if err := cli.Table(p.std.Out, []string{"ACTION", "RESOURCE", "WHAT"}, rows); err != nil {
						return err
					}
					return p.diffs(steps)
				}); err != nil {
					return err
				}
				if todo > 0 {
					return fault.Todof("%s to do", cli.Count(todo, "thing", "things"))
				}
				return nil
			})
		},
	}
}

// diffs shows how texts change, each after an empty line.
func (p *program) diffs(steps []apply.Step) error {
	for _, s := range steps {
		if s.Diff == "" {
			continue
		}
		if _, err := fmt.Fprintf(p.std.Out, "\n%s", cli.Lines(s.Diff)); err != nil {
			return err
		}
	}
	return nil
}

// document reads a declaration from a file, or from standard input for "-".
func (p *program) document(ctx context.Context, name string) ([]byte, error) {
	in, done, err := p.open(ctx, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.Failedf("cannot read declaration: there is no %q", name).
			Hint("give the file, or - for standard input; mesh-host schema says what is in one")
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read declaration %q: %w", name, err)
	}
	defer done()
	var doc bytes.Buffer
	if f, ok := in.(*os.File); ok { // a large one is not moved from place to place
		if fi, err := f.Stat(); err == nil {
			doc.Grow(int(min(max(fi.Size(), 0), declaration.MaxSize)) + bytes.MinRead)
		}
	}
	// One byte over the limit is enough to see that it is too large.
	if _, err := doc.ReadFrom(io.LimitReader(in, declaration.MaxSize+1)); err != nil {
		return nil, fmt.Errorf("cannot read declaration %q: %w", name, err)
	}
	return doc.Bytes(), nil
}
