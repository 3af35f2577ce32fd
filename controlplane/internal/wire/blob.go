package wire

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/provider"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/state"
	"github.com/nox-mesh/nox-mesh/host/link"
)

// blob sends content by digest: the node's declaration, or what that names, as
// long as the node holds its grant.
// Anything else is refused in the same words, whether it is here or not.
func (s *Server) blob(w http.ResponseWriter, r *http.Request, n *state.Node) {
	d, err := digest.Parse(r.PathValue("digest"))
	if err != nil || d.Algorithm() != digest.SHA256 {
		s.refuse(w, link.Refused.Errorf("cannot send content: %q is not a SHA-256 digest", r.PathValue("digest")))
		return
	}
	// Counted among those under way before the grant is looked at, so that one that
	// is taken away in between ends it.
	out := s.Downloads.begin(n.ID, w, r, s)
	defer out.leave()
	var held bool
	err = s.office.Store.View(func(tx *state.Tx) (err error) {
		held, err = provider.Holds(tx, provider.Content, n.ID)
		return err
	})
	if err == nil && !held {
		err = link.Refused.Errorf("cannot send content: this node holds no grant for it")
	}
	if err != nil {
		s.refuse(w, err)
		return
	}
	var from io.ReadSeeker
	switch {
	case n.Hold != nil:
		s.refuse(w, link.Refused.Errorf("cannot send content %q: node %q is sent nothing new until a person approves it", d, n.Name))
		return
	case n.Wanted.Generation > 0 && d.String() == n.Wanted.Digest:
		var doc []byte
		err := s.office.Store.View(func(tx *state.Tx) error {
			doc = tx.Declaration(n.ID)
			return nil
		})
		if err != nil {
			s.refuse(w, err)
			return
		}
		if digest.FromBytes(doc) != d {
			// It was changed since the node was looked up; a message is on its way.
			s.refuse(w, notYours(d))
			return
		}
		from = bytes.NewReader(doc)
	case slices.Contains(n.Wanted.Sources, d.String()):
		f, err := s.content.Open(d)
		if err != nil {
			// A first node's own content is named by its declaration and need not
			// be here.
			s.refuseAs(w, http.StatusNotFound, link.Refused.Errorf("cannot send content %q: the control plane does not have it", d))
			return
		}
		defer f.Close()
		from = f
	default:
		s.refuse(w, notYours(d))
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("ETag", `"`+d.String()+`"`)
	s.patience(w)
	http.ServeContent(out, r, "", time.Time{}, from)
	if out.ended() {
		panic(http.ErrAbortHandler) // what came so far is not to be taken for all of it
	}
}

func notYours(d digest.Digest) error {
	return link.Refused.Errorf("cannot send content %q: the declaration of this node does not name it", d)
}
