package client

import (
	"errors"
	"net"
)

// maxSaid bounds the causes that are remembered; beyond it they count as said.
const maxSaid = 64

// said is which causes were logged since the link stood, by address: ten years of
// trying are not ten years of log, also where two causes take turns.
type said map[string]bool

// again says whether a cause was logged already. The port of this end is another
// one at each try, and says nothing.
func (s said) again(address string, err error) bool {
	text := err.Error()
	var op *net.OpError
	if errors.As(err, &op) {
		text = op.Op + " " + op.Err.Error()
	}
	text = address + " " + text
	if s[text] || len(s) >= maxSaid {
		return true
	}
	s[text] = true
	return false
}
