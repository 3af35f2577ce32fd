package manpage

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func program() *cobra.Command {
	none := func(*cobra.Command, []string) error { return nil }
	root := &cobra.Command{Use: "thing", Short: "do things", Long: "thing does things.\n.TH is not a request here, \\fBnor this\\fP."}
	root.PersistentFlags().String("root", "", "put paths under this `DIR`")
	key := &cobra.Command{Use: "key", Short: "about keys"}
	key.AddCommand(&cobra.Command{Use: "make NAME", Short: "Make a key", Example: "  thing key make a", RunE: none})
	root.AddCommand(key, Command(), &cobra.Command{Use: "secret", Hidden: true, RunE: none})
	return root
}

func TestPageNamesWhatAPersonCanCall(t *testing.T) {
	root, out := program(), &strings.Builder{}
	root.SetArgs([]string{"man"})
	root.SetOut(out)
	if err := root.Execute(); err != nil {
		t.Fatal(err)
	}
	page := out.String()
	for _, want := range []string{
		".TH THING 8", "thing \\- do things\n", ".SS thing key make NAME\n", "Make a key.\n", "\\-\\-root DIR   put paths under this DIR\n",
		"\\&.TH is not a request here, \\efBnor this\\efP.\n",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
	for _, not := range []string{"secret", ".SS thing man", "completion"} {
		if strings.Contains(page, not) {
			t.Errorf("the page has %q:\n%s", not, page)
		}
	}
}

func TestManShowsThePage(t *testing.T) {
	groff, err := exec.LookPath("groff")
	if err != nil {
		t.Skip("groff is not here")
	}
	var page strings.Builder
	if err := Write(&page, program()); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(groff, "-man", "-Tascii", "-ww", "-z")
	cmd.Stdin = strings.NewReader(page.String())
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("groff: %v: %s", err, out)
	}
}
