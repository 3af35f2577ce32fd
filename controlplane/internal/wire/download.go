package wire

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/provider"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/state"
)

// Downloads are those under way, by node. It is the provider of the control plane's
// own content: there is nothing to make, because each request looks at the record,
// and to take a grant away is to end what began before.
type Downloads struct {
	mu sync.Mutex
	of map[string]map[*download]bool
}

func newDownloads() *Downloads { return &Downloads{of: map[string]map[*download]bool{}} }

// Name implements provider.Provider.
func (d *Downloads) Name() string { return provider.Content }

// Grant implements provider.Provider.
func (d *Downloads) Grant(context.Context, string) (string, error) { return "", nil }

// Revoke ends the downloads of a node. None begins after it: the record says that
// the grant is taken away.
func (d *Downloads) Revoke(_ context.Context, g state.Grant) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for x := range d.of[g.Node] {
		x.end()
	}
	return nil
}

// begin counts one among those under way, until it leaves.
func (d *Downloads) begin(node string, w http.ResponseWriter, r *http.Request, s *Server) *download {
	x := &download{ResponseWriter: w, node: node, of: d, server: s}
	if r.ProtoMajor == 1 {
		x.alone, _ = r.Context().Value(passedKey{}).(*passed)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.of[node] == nil {
		d.of[node] = map[*download]bool{}
	}
	d.of[node][x] = true
	return x
}

// A download is the answer to one request for content. Each of its writes has its
// own time, and ends when the grant does.
type download struct {
	http.ResponseWriter
	node   string
	of     *Downloads
	server *Server
	// alone is the connection, where nothing else is on it.
	alone *passed

	mu   sync.Mutex
	over bool
}

var errTakenAway = errors.New("the node's grant was taken away")

func (x *download) Write(b []byte) (int, error) {
	x.mu.Lock()
	if x.over {
		x.mu.Unlock()
		return 0, errTakenAway
	}
	x.server.patience(x.ResponseWriter)
	x.mu.Unlock()
	return x.ResponseWriter.Write(b)
}

// end lets no more be written, and ends the write that waits for a slow peer.
// Downloads.mu is held, so the handler has not returned. A connection of its own is
// reset: closing it would take five seconds (crypto/tls, closeNotify) and send what
// the kernel still has.
func (x *download) end() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.over = true
	if x.alone != nil {
		if c, ok := x.alone.Conn.(interface{ SetLinger(int) error }); ok {
			_ = c.SetLinger(0)
		}
		_ = x.alone.Close()
		return
	}
	_ = http.NewResponseController(x.ResponseWriter).SetWriteDeadline(time.Unix(1, 0))
}

func (x *download) ended() bool { x.mu.Lock(); defer x.mu.Unlock(); return x.over }

// leave is the end of the handler.
func (x *download) leave() {
	x.of.mu.Lock()
	defer x.of.mu.Unlock()
	delete(x.of.of[x.node], x)
	if len(x.of.of[x.node]) == 0 {
		delete(x.of.of, x.node)
	}
}
