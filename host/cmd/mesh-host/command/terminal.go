package command

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"

	"github.com/nox-mesh/nox-mesh/host/link"
	"github.com/nox-mesh/nox-mesh/internal/input"
	"github.com/nox-mesh/nox-mesh/internal/secret"
)

// typedToken reads a token that a person pastes: unseen, and up to the line
// with which it is whole (a paste may come in several).
func typedToken(ctx context.Context, in *os.File, prompt io.Writer) (string, error) {
	show, err := secret.Unseen(in)
	if err != nil {
		return "", fmt.Errorf("cannot read the token: %w", err)
	}
	defer func() { _ = show() }()
	fmt.Fprint(prompt, "paste the token (it is not shown), then press enter: ")
	lines := bufio.NewScanner(io.LimitReader(input.Interruptible(ctx, in), maxToken))
	text := ""
	for lines.Scan() {
		text += lines.Text() + "\n"
		if _, err := link.ParseToken([]byte(text)); err == nil {
			break
		}
		if lines.Text() == "" {
			break // an empty line ends what does not become a token
		}
	}
	if err := lines.Err(); err != nil {
		return "", fmt.Errorf("cannot read the token: %w", err)
	}
	return text, nil
}
