package product

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/nox-mesh/nox-mesh/internal/child"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// Texts are what a program prints of itself: its manual page and what shells
// complete its commands with.
type Texts struct{ Man, Bash, Zsh, Fish []byte }

// Files are the texts of the program name by where they lie, relative to share.
func (t Texts) Files(name string) map[string][]byte {
	return map[string][]byte{
		"man/man8/" + name + ".8":                     t.Man,
		"bash-completion/completions/" + name:         t.Bash,
		"zsh/site-functions/_" + name:                 t.Zsh,
		"fish/vendor_completions.d/" + name + ".fish": t.Fish,
	}
}

// Describe runs the program at path, which must be one for this machine, and
// takes down what it says of itself.
func Describe(ctx context.Context, path string) (Texts, error) {
	if path == "" {
		return Texts{}, fault.Failedf("cannot describe the programs: none of them runs on this machine").
			Hint("give those for this machine as well, or run it on one of theirs")
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return Texts{}, err
	}
	var t Texts
	for _, ask := range []struct {
		into *[]byte
		args []string
	}{
		{&t.Man, []string{"man"}},
		{&t.Bash, []string{"completion", "bash"}},
		{&t.Zsh, []string{"completion", "zsh"}},
		{&t.Fish, []string{"completion", "fish"}},
	} {
		res, err := child.Run(ctx, child.Command{Path: path, Args: ask.args, Timeout: 30 * time.Second})
		if err != nil {
			return Texts{}, fmt.Errorf("cannot ask %q to describe itself: %w", filepath.Base(path), err)
		}
		if len(res.Stdout) == 0 || res.Truncated {
			return Texts{}, fault.Failedf("cannot ask %q to describe itself: it says nothing, or too much, to %q", filepath.Base(path), ask.args)
		}
		*ask.into = res.Stdout
	}
	return t, nil
}
