package state

import "github.com/nox-mesh/nox-mesh/host/link"

// maxLine bounds the values that are remembered of a line, and of what left it.
const maxLine = 32

// A Line is how the sessions of one node follow each other: each says the value
// that the one before was given.
type Line struct {
	// Epoch is the one its last value was given in.
	Epoch uint64 `json:"epoch"`
	// Values are the newest first.
	Values []link.SessionValue `json:"values"`
	// Left are values of sessions that the line went back behind: a machine that
	// shows one is another than the one that went back.
	Left []link.SessionValue `json:"left,omitempty"`
}

// Grow makes v the newest value, after the one at index at; what was newer than
// that is left. A negative at begins anew.
func (l *Line) Grow(epoch uint64, v link.SessionValue, at int) {
	l.Epoch = epoch
	if at < 0 {
		l.Values, l.Left = []link.SessionValue{v}, nil
		return
	}
	l.Left = clipped(append(append([]link.SessionValue{}, l.Values[:at]...), l.Left...))
	l.Values = clipped(append([]link.SessionValue{v}, l.Values[at:]...))
}

func clipped(vs []link.SessionValue) []link.SessionValue { return vs[:min(len(vs), maxLine)] }

// Line returns the sessions of a node, nil before the first that it kept.
func (t *Tx) Line(node string) (*Line, error) { return get[Line](t, bucketLines, node) }

// PutLine writes them.
func (t *Tx) PutLine(node string, l *Line) error { return put(t, bucketLines, node, l) }

// DropLine forgets them: another machine has the node's name now.
func (t *Tx) DropLine(node string) error { return t.tx.Bucket(bucketLines).Delete([]byte(node)) }
