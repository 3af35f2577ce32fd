package command

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/host/link"
	"github.com/nox-mesh/nox-mesh/internal/cli"
)

func std(w io.Writer, format string, args ...any) (int, error) {
	return fmt.Fprintf(w, format, args...)
}

// said is what there is to say of an outcome, on one line.
func said(r link.ResourceReport) string {
	switch {
	case r.Error != "" && r.Note != "":
		return cli.OneLine(r.Error + "; " + r.Note)
	case r.Error != "":
		return cli.OneLine(r.Error)
	}
	return cli.OneLine(r.Note)
}

// ago says how long ago a moment was, roughly.
func ago(now, then time.Time) string {
	d := now.Sub(then).Round(time.Second)
	switch {
	case then.IsZero():
		return "never"
	case d < 0:
		return "in the future (is the clock right?)"
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s ago", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min ago", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h ago", int(d.Hours()))
	}
	return fmt.Sprintf("%d days ago", int(d.Hours()/24))
}

// signedBy names the keys that signed, and the release root that names them.
func signedBy(list []trust.Signer) string {
	var out []string
	for _, s := range list {
		by := "a key file"
		if s.Root > 0 {
			by = fmt.Sprintf("release root %d", s.Root)
		}
		out = append(out, fmt.Sprintf("key %.12s (%s)", s.Key, by))
	}
	return strings.Join(out, ", ")
}
