package apply

import (
	"bytes"
	"context"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"

	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/host/internal/resource"
)

// A texts is a kind whose things hold text that a person wants to see the change
// of.
type texts interface {
	// Texts returns what is there and what is wanted, each at most max bytes, and
	// nil when there is none to be seen.
	Texts(ctx context.Context, want resource.Want, max int64) (have, wanted []byte, err error)
}

// maxText bounds a text that is compared, in bytes: a change of more than that
// nobody reads.
const maxText = 256 << 10

// diff is the change as a unified diff, or "" when there is none to show: what
// is no text, a secret, or too long.
func diff(ctx context.Context, t *task) string {
	k, ok := t.kind.(texts)
	if !ok || t.wasSecret() {
		return ""
	}
	have, wanted, err := k.Texts(ctx, t.want, maxText+1)
	if err != nil || bytes.Equal(have, wanted) || !isText(have) || !isText(wanted) {
		return "" // the differences say that it differs
	}
	from, to := t.key+" (is)", t.key+" (declared)"
	if have == nil {
		from = "nothing"
	}
	return udiff.Unified(from, to, string(have), string(wanted))
}

// wasSecret: what is there now is nothing to show, whatever shall be.
func (t *task) wasSecret() bool {
	if t.prior == nil {
		return false
	}
	was, err := declaration.FromSpec(t.prior.ID, t.prior.Spec)
	return err != nil || was.File != nil && was.File.Secret
}

func isText(b []byte) bool {
	return len(b) <= maxText && utf8.Valid(b) && !bytes.ContainsRune(b, 0)
}
