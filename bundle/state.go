package bundle

import (
	"context"
	"fmt"
)

// The states of a reading, named for what is done next.
type state int

const (
	stateLayout state = iota
	statePointers
	stateIndex
	stateHead
	stateAdmit
	stateManifests
	stateBlobs
	stateEnd
	stateExpand
	stateMark
	stateDone
)

// walk goes from one state to another. Whatever refuses the bundle says what to
// do about it; whoever was asked to admit it has said so itself.
func (d *reading) walk(ctx context.Context, from, until state) error {
	for s := from; s != until; {
		next, err := d.step(ctx, s)
		if err != nil && s != stateAdmit {
			return advise(err)
		}
		if err != nil {
			return err
		}
		s = next
	}
	return nil
}

func (d *reading) step(ctx context.Context, s state) (state, error) {
	switch s {
	case stateLayout:
		return statePointers, d.readLayout()
	case statePointers:
		return stateIndex, d.readPointers()
	case stateIndex:
		return stateHead, d.readIndex()
	case stateHead:
		return stateAdmit, d.readHead()
	case stateAdmit:
		return stateManifests, d.admit()
	case stateManifests:
		return stateBlobs, d.readManifests()
	case stateBlobs:
		return stateEnd, d.readBlobs(ctx)
	case stateEnd:
		return stateExpand, d.readEnd()
	case stateExpand:
		return stateMark, d.expandAll(ctx)
	case stateMark:
		return stateDone, d.mark()
	}
	return s, fmt.Errorf("internal error: no state %d", s)
}
