package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/nox-mesh/nox-mesh/host/internal/service"
	"github.com/nox-mesh/nox-mesh/host/internal/supervise"
	"github.com/nox-mesh/nox-mesh/internal/cli"
	"github.com/nox-mesh/nox-mesh/internal/clock"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

func (p *program) logs() *cobra.Command {
	var q service.LogQuery
	var lines uint
	var since string
	c := &cobra.Command{
		Use:   "logs NAME",
		Short: "Show what a declared process said",
		Long: `Show what a declared process printed, and what was done about it when it ended.
Under systemd that is in the journal of its unit (journalctl -u nox-NAME, which
also has the times); elsewhere the last mebibyte or two are kept in its folder.

On a terminal, what cannot be printed is taken out; a pipe gets each byte as it
was. With --json each line is an object of its own: text, and where it is known
the time.

With --follow it goes on until Ctrl-C, over restarts of the process.`,
		Example: "  mesh-host logs web\n  mesh-host logs web --follow\n  mesh-host logs web --since 1h --lines 0 | grep error",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			l, err := p.layout()
			if err != nil {
				return err
			}
			q.Name, q.Lines = args[0], int(min(lines, 1<<31))
			if since != "" {
				if q.Since, err = moment(clock.System.Now(), since); err != nil {
					return err
				}
				if !c.Flags().Changed("lines") {
					q.Lines = 0
				}
			}
			return p.showLogs(c.Context(), service.Config{Layout: l, Clock: clock.System, Log: p.log()}, q)
		},
	}
	f := c.Flags()
	f.BoolVarP(&q.Follow, "follow", "f", false, "go on with what it says from now on")
	f.UintVarP(&lines, "lines", "n", 100, "show the last so `MANY`, 0 for all that are kept")
	f.StringVar(&since, "since", "", "show what was said since `T`: 90s, 2h, 2006-01-02, \"2006-01-02 15:04\", 2006-01-02T15:04:05Z")
	return c
}

func (p *program) showLogs(ctx context.Context, cfg service.Config, q service.LogQuery) error {
	if q.Follow {
		var stop func()
		ctx, stop = p.std.UntilUnread(ctx)
		defer stop()
	}
	var err error
	switch {
	case p.json:
		err = service.LogLines(ctx, cfg, q, p.jsonLine)
	case p.std.ToTerminal():
		out := &cli.Foreign{W: p.std.Out}
		err = errors.Join(service.LogBytes(ctx, cfg, q, out), out.Close())
	default:
		err = service.LogBytes(ctx, cfg, q, struct{ io.Writer }{p.std.Out})
	}
	if errors.Is(err, supervise.ErrRemoved) {
		if !p.quiet {
			fmt.Fprintf(p.std.Err, "%q was removed, and says nothing any more\n", q.Name)
		}
		return nil
	}
	return err
}

// jsonLine prints v on one line.
func (p *program) jsonLine(l service.LogLine) error {
	b, err := json.Marshal(l)
	if err != nil {
		return err
	}
	_, err = p.std.Out.Write(append(cli.EscapeJSON(b), '\n'))
	return err
}

// moment reads a time of day, or how long ago it was.
func moment(now time.Time, text string) (time.Time, error) {
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	for _, form := range []string{time.RFC3339, "2006-01-02 15:04:05", "2006-01-02 15:04", time.DateOnly} {
		if t, err := time.ParseInLocation(form, text, now.Location()); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fault.Usagef("cannot read --since %q: it is no time", text).
		Hint("say how long ago, 90s or 2h, or when: 2006-01-02 or \"2006-01-02 15:04\" or 2006-01-02T15:04:05Z")
}
