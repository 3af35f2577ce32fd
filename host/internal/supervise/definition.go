package supervise

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// maxFile bounds what is read of a definition.
const maxFile = 4 << 20

// path is what the shim and, unless it says otherwise, the process have as
// their search path.
const path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// A Definition says what a shim runs. Its JSON is part of an agreement between
// versions: a process whose definition has other bytes is restarted, so a
// field that is added must be left out when it says nothing new.
type Definition struct {
	// Command is the program, absolute and looked up under the root, and its
	// arguments.
	Command []string `json:"command"`
	// Env is the whole environment as NAME=value, sorted; the shim adds PATH
	// when it is not in it, NOX_SHIM, which says whose it is, and NOX_ROOT when
	// there is a root.
	Env []string `json:"env,omitempty"`
	// UID, GID and Groups are numbers, resolved by whoever wrote this.
	UID    uint32   `json:"uid"`
	GID    uint32   `json:"gid"`
	Groups []uint32 `json:"groups,omitempty"`
	// Directory is the working directory, absolute, under the root; "/" when
	// it is empty.
	Directory string `json:"directory,omitempty"`
	// Once: it runs to completion once per content of this definition.
	Once bool `json:"once,omitempty"`
	// Restart is "always", "on-failure" or "never".
	Restart string `json:"restart"`
	// SuccessCodes are the exit statuses that are no failure.
	SuccessCodes []int `json:"success_codes"`
	// StopSignal is a number.
	StopSignal int `json:"stop_signal"`
	// StopTimeout is how long it may take to stop.
	StopTimeout time.Duration `json:"stop_timeout_ns"`
	// FailureLimit is the number of failures in a row after which it is halted.
	FailureLimit int `json:"failure_limit"`
	// Rollback: at the limit, the executable that it lived with before is put back
	// in place of the one that failed.
	Rollback bool `json:"rollback,omitempty"`

	// The times below have a default, in timing, when they are zero. They are
	// here so that a test need not wait.

	// Backoff is the first pause; those after it begin at ten times that.
	Backoff    time.Duration `json:"backoff_ns,omitempty"`
	BackoffMax time.Duration `json:"backoff_max_ns,omitempty"`
	Settle     time.Duration `json:"settle_ns,omitempty"`
	Healthy    time.Duration `json:"healthy_ns,omitempty"`
	// Guard is how often the shim looks after its lock and its state.
	Guard time.Duration `json:"guard_ns,omitempty"`
}

// timing fills in the times that the definition leaves open.
func (d *Definition) timing() {
	fill := func(at *time.Duration, value time.Duration) {
		if *at <= 0 {
			*at = value
		}
	}
	fill(&d.Backoff, 100*time.Millisecond)
	fill(&d.BackoffMax, 30*time.Second)
	fill(&d.Settle, 300*time.Millisecond)
	fill(&d.Healthy, time.Minute)
	fill(&d.Guard, 2*time.Second)
}

// Bytes is the definition as it is written to its file.
func (d Definition) Bytes() ([]byte, error) {
	b, err := json.MarshalIndent(d, "", "  ")
	return append(b, '\n'), err
}

// Digest names the content of a definition file.
func Digest(definition []byte) string {
	sum := sha256.Sum256(definition)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func parse(b []byte) (Definition, error) {
	var d Definition
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&d); err != nil {
		return d, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return d, errors.New("there is more after its end")
	}
	if len(d.Command) == 0 || !filepath.IsAbs(d.Command[0]) {
		return d, errors.New("it names no absolute program")
	}
	switch d.Restart {
	case "always", "on-failure", "never":
	default:
		return d, fmt.Errorf("restart %q is not known", d.Restart)
	}
	return d, nil
}

// readBounded reads a small file of ours.
func readBounded(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(b) > maxFile {
		err = fmt.Errorf("%q is larger than %d bytes", path, maxFile)
	}
	return b, err
}
