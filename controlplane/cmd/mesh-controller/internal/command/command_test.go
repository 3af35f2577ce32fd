package command

import (
	"bytes"
	"strings"
	"testing"

	"github.com/nox-mesh/nox-mesh/internal/cli"
)

func TestEveryCommandHasHelpWithAnExample(t *testing.T) {
	for _, c := range []string{
		"", "serve", "token", "token create", "token list", "token revoke", "token inspect", "address", "address add",
		"address remove", "address list", "nodes", "show", "declare", "push", "undeclare", "approve", "refuse", "revoke", "events", "status", "version",
	} {
		var out bytes.Buffer
		std := cli.Stdio{In: strings.NewReader(""), Out: &out, Err: &out}
		if err := Run(t.Context(), append(strings.Fields(c), "--help"), std); err != nil {
			t.Errorf("%s: %v", c, err)
		}
		if first := out.String()[0]; c != "" && (first < 'A' || first > 'Z') {
			t.Errorf("%s: the help begins with %q", c, first)
		}
		_, example, found := strings.Cut(out.String(), "Examples:\n")
		if want := "  mesh-controller " + c; !found || !strings.HasPrefix(example, strings.TrimRight(want, " ")) {
			t.Errorf("%s: no example that begins with %q in:\n%s", c, want, out.String())
		}
		if long, _, _ := strings.Cut(out.String(), "Usage:"); len(long) < 60 {
			t.Errorf("%s: hardly explained: %q", c, long)
		}
	}
}
