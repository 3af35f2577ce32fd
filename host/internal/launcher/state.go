package launcher

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/nox-mesh/nox-mesh/host/internal/slots"
)

// StateFile is the launcher's state, beside the copy.
const StateFile = "state"

// A State is what the launcher knows beside what lies on the disk.
type State struct {
	// Sequence is the number of the writing (slots).
	Sequence uint64 `json:"sequence"`
	// Trial is what has to prove itself.
	Trial *Trial `json:"trial,omitempty"`
	// Failed is what was given up last, until another version proves itself.
	Failed *Failed `json:"failed,omitempty"`
}

// Number implements slots.Kept.
func (s *State) Number() *uint64 { return &s.Sequence }

// A Trial is the time until a version proves itself.
type Trial struct {
	// Digest is of the successor, "sha256:…"; empty with Again.
	Digest string `json:"digest,omitempty"`
	// Again: it is the copy, after a successor failed.
	Again bool `json:"again,omitempty"`
	// Version is what it says of itself, once it came so far.
	Version string `json:"version,omitempty"`
	// Starts are those that count. Total are those of all successors since the last
	// proof: one whose content is another at each start is no reason to go on for ever.
	Starts int `json:"starts"`
	Total  int `json:"total,omitempty"`
	// Ends are how the last of them ended: "exit-code/exited/1".
	Ends []string `json:"ends,omitempty"`
	// Runs are the service manager's names of the last starts ($INVOCATION_ID): the
	// journal has what was said in each.
	Runs []string `json:"runs,omitempty"`
}

// uncount takes a start back.
func (t *Trial) uncount() {
	t.Starts, t.Total = max(0, t.Starts-1), max(0, t.Total-1)
}

// Failed is a version that could not live here.
type Failed struct {
	Digest  string    `json:"digest"`
	Version string    `json:"version,omitempty"`
	Starts  int       `json:"starts"`
	Why     string    `json:"why"`
	At      time.Time `json:"at"`
	Ends    []string  `json:"ends,omitempty"`
	Runs    []string  `json:"runs,omitempty"`
	// Back: the copy was put in its place. Else it lies there still.
	Back bool `json:"back,omitempty"`
}

// maxText bounds a text in the state, in bytes, and maxList a list: however they
// are escaped, all fit into a slot.
const (
	maxText = 64
	maxList = Limit
)

func bounded(s string) string {
	if len(s) > maxText {
		s = strings.ToValidUTF8(s[:maxText], "") + "…"
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' && r != '…' || strings.ContainsRune(`"\<>&`, r) {
			return '.'
		}
		return r
	}, s)
}

func last(list []string) []string { return list[max(0, len(list)-maxList):] }

// Read reads the state in the launcher's folder. Where there is none, or none that
// is whole, nothing is known; the latter is an error besides.
func Read(dir string) (State, error) {
	s, err := slots.Read[State](filepath.Join(dir, StateFile))
	if errors.Is(err, fs.ErrNotExist) {
		return State{}, nil
	}
	return s, err
}

func (s *State) write(dir string) error { return slots.Write(filepath.Join(dir, StateFile), s) }
