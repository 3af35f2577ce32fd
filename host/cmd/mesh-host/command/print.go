package command

import (
	"fmt"
	"strings"

	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/host/link"
	"github.com/nox-mesh/nox-mesh/internal/cli"
)

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
