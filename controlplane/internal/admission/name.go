package admission

import (
	"fmt"
	"strings"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/state"
)

// maxName is that of a declaration's name, which a node's becomes.
const maxName = 63

// nameOf makes a name of a hostname: lower case, one '-' for whatever a name
// may not hold. It may be empty.
func nameOf(hostname string) string {
	var b strings.Builder
	dash := false
	for _, c := range strings.ToLower(hostname) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			dash = true
			continue
		}
		if dash && b.Len() > 0 {
			b.WriteByte('-')
		}
		dash = false
		b.WriteRune(c)
	}
	name := b.String()
	return strings.TrimRight(name[:min(len(name), maxName)], "-")
}

// freeName returns want, or want with the first number behind it that makes it
// a name no node has. A name stays with the key it was given to, so that of a
// revoked node is not free.
func freeName(tx *state.Tx, want, id string) (string, error) {
	if want == "" {
		want = "node-" + id[:8]
	}
	name := want
	for i := 2; ; i++ {
		n, err := tx.NodeByName(name)
		if err != nil {
			return "", err
		}
		if n == nil || n.ID == id {
			return name, nil
		}
		suffix := fmt.Sprintf("-%d", i)
		name = want[:min(len(want), maxName-len(suffix))] + suffix
	}
}
