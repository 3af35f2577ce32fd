package wire

import (
	"net/http"
	"sync"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/address"
	"github.com/nox-mesh/nox-mesh/host/link"
)

// maxBodies is how many bytes of bodies may be in memory at once. The shares are
// how many of them may be for one node, one source address, and all those
// together who have not proven who they are: an address has room for the largest
// enrolment, a node for the largest of what else it sends, and what strangers
// cannot take is the nodes'. A token has no share: its id is no secret, and
// whoever knows it could use up what is its holder's.
const (
	maxBodies     = 64 << 20
	nodeShare     = 4 << 20
	addressShare  = link.MaxEnrolBody + 4<<20
	strangerShare = maxBodies / 2
)

// A budget is a number of bytes to be given out, with a share for each of those
// that take.
type budget struct {
	mu    sync.Mutex
	left  int64
	taken map[payer]int64
}

// A payer is whom a body counts against.
type payer struct {
	kind, id string
	share    int64
}

func byNode(id string) payer { return payer{"node", id, nodeShare} }

// strangers are all whose bodies are read before they have proven anything.
var strangers = payer{"strangers", "", strangerShare}

// byStranger is who pays for a body that proves nothing until it is read: all
// strangers, and the address.
func byStranger(r *http.Request) []payer { return []payer{strangers, byAddress(r)} }

// byAddress is the address a request comes from; of IPv6 the network, in which
// one machine has as many addresses as it likes (RFC 8981).
func byAddress(r *http.Request) payer {
	return payer{"address", address.Source(r.RemoteAddr), addressShare}
}

func newBudget(n int64) *budget { return &budget{left: n, taken: map[payer]int64{}} }

func (b *budget) take(n int64, from ...payer) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n > b.left {
		return false
	}
	for _, p := range from {
		if b.taken[p]+n > p.share {
			return false
		}
	}
	b.left -= n
	for _, p := range from {
		b.taken[p] += n
	}
	return true
}

func (b *budget) give(n int64, from ...payer) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left += n
	for _, p := range from {
		if b.taken[p] -= n; b.taken[p] <= 0 {
			delete(b.taken, p)
		}
	}
}
