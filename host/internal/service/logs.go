package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/host/internal/resource/process"
	"github.com/nox-mesh/nox-mesh/host/internal/supervise"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/internal/layout"
)

// A LogQuery says what of a process's output is wanted.
type LogQuery struct {
	// Name is the process's.
	Name string
	// Lines is how many of the last are wanted; 0 is all that is kept.
	Lines int
	// Since leaves out what was said before; the zero time is all.
	Since time.Time
	// Follow goes on with what is said from then on, until the context ends.
	Follow bool
}

// A LogLine is one line of a process's output, or one entry of its journal.
type LogLine struct {
	// Time is when it was said, where that is known: in the journal.
	Time time.Time `json:"time,omitzero"`
	Text string    `json:"text"`
	// Cut says that the line is longer than Text, which has its first mebibyte.
	Cut bool `json:"cut,omitempty"`
}

// maxLogLine bounds the text of a LogLine, in bytes.
const maxLogLine = 1 << 20

// LogBytes writes to out what a process said, byte for byte; LogLines calls tell with
// each line of it. Neither asks the service: what a process said is there without it.
// The error is supervise.ErrRemoved when the process was removed while it was
// followed.
func LogBytes(ctx context.Context, cfg Config, q LogQuery, out io.Writer) error {
	from, err := logOf(ctx, cfg, q)
	if err != nil {
		return err
	}
	return from.bytes(ctx, out)
}

// LogLines is LogBytes by the line.
func LogLines(ctx context.Context, cfg Config, q LogQuery, tell func(LogLine) error) error {
	from, err := logOf(ctx, cfg, q)
	if err != nil {
		return err
	}
	return from.lines(ctx, tell)
}

// An output is where what one process says is kept.
type output interface {
	bytes(ctx context.Context, out io.Writer) error
	lines(ctx context.Context, tell func(LogLine) error) error
}

// logOf finds where the output of the process is, by what keeps its shim up.
func logOf(ctx context.Context, cfg Config, q LogQuery) (output, error) {
	if q.Name == layout.HostName {
		return nil, fault.Usagef("cannot show logs: %q is the host itself", q.Name).Hint("journalctl -u %s", layout.HostName)
	}
	dir := filepath.Join(cfg.Layout.Processes(), q.Name)
	switch fi, err := os.Lstat(dir); {
	case !supervise.ValidName(q.Name):
		return nil, unknownProcess(cfg, q.Name)
	case errors.Is(err, fs.ErrNotExist):
		return nil, elsewhere(ctx, cfg, q.Name)
	case err != nil:
		return nil, permission(fmt.Errorf("cannot show logs: %w", err))
	case !fi.IsDir():
		return nil, unknownProcess(cfg, q.Name)
	}
	if s, _ := process.Choose(cfg.Layout); s == process.Systemd(cfg.Layout) {
		return openJournal(q)
	}
	return fileLog{dir, q}, nil
}

// elsewhere is the fault of a name under which no process has a folder.
func elsewhere(ctx context.Context, cfg Config, name string) error {
	h, done, err := Connect(ctx, cfg)
	if err != nil {
		return fmt.Errorf("cannot show logs: there is no process %q here: %w", name, err)
	}
	defer func() { _ = done() }()
	st, err := h.Status(ctx)
	if err != nil || st.Last == nil {
		return unknownProcess(cfg, name)
	}
	for _, r := range st.Last.Resources {
		switch r.Key {
		case string(declaration.TypeProcess) + ":" + name:
			return fault.Failedf("cannot show logs: process %q has said nothing yet, its outcome is %q", name, r.Outcome).
				Hint("mesh-host status says what it waits for")
		case string(declaration.TypeContainer) + ":" + name:
			return fault.Failedf("cannot show logs: %q is a container, whose runtime keeps what it says", name).
				Hint("podman logs %s, or docker logs %s", name, name)
		}
	}
	return unknownProcess(cfg, name)
}

// mostNamed bounds how many processes a fault names.
const mostNamed = 20

// unknownProcess names those that there are.
func unknownProcess(cfg Config, name string) error {
	f := fault.Failedf("cannot show logs: there is no process %q here", name)
	entries, err := os.ReadDir(cfg.Layout.Processes())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return permission(fmt.Errorf("cannot show logs: %w", err))
	}
	var names []string
	for _, e := range entries {
		if supervise.ValidName(e.Name()) && e.IsDir() {
			names = append(names, e.Name())
		}
	}
	switch {
	case len(names) == 0:
		return f.Hint("none is declared; mesh-host status says what is")
	case len(names) > mostNamed:
		return f.Hint("there are %s, and %d more: mesh-host owned lists them", strings.Join(names[:mostNamed], ", "), len(names)-mostNamed)
	}
	return f.Hint("name one that is: %s", strings.Join(names, ", "))
}

// A fileLog is that of a shim above which there is no journal.
type fileLog struct {
	dir string
	q   LogQuery
}

func (l fileLog) bytes(ctx context.Context, out io.Writer) error {
	if !l.q.Since.IsZero() {
		return fault.Failedf("cannot show logs of %q since a time: without systemd its output is kept without times", l.q.Name).
			Hint("name how many lines: mesh-host logs %s --lines 100", l.q.Name)
	}
	err := supervise.CopyOutput(ctx, l.dir, l.q.Lines, l.q.Follow, out)
	if err != nil && !errors.Is(err, supervise.ErrRemoved) {
		return fmt.Errorf("cannot show logs of %q: %w", l.q.Name, err)
	}
	return err
}

func (l fileLog) lines(ctx context.Context, tell func(LogLine) error) error {
	w := &lineWriter{tell: tell}
	return errors.Join(l.bytes(ctx, w), w.close())
}
