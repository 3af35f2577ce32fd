package command

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// journalHandler writes each line with its priority before it, as sd-daemon(3) has
// it and journald takes it off again (SyslogLevelPrefix= of systemd.exec(5)). The
// time is left out: the journal has its own.
func journalHandler(w io.Writer, o *slog.HandlerOptions) slog.Handler {
	plain := *o
	plain.ReplaceAttr = func(groups []string, a slog.Attr) slog.Attr {
		if len(groups) == 0 && a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}
	var h byPriority
	for i, priority := range []int{3, 4, 6, 7} {
		h[i] = slog.NewTextHandler(prefixed{w, fmt.Sprintf("<%d>", priority)}, &plain)
	}
	return h
}

// byPriority is a handler for errors, for warnings, for what is worth knowing, and
// for the rest.
type byPriority [4]slog.Handler

func (h byPriority) of(level slog.Level) slog.Handler {
	switch {
	case level >= slog.LevelError:
		return h[0]
	case level >= slog.LevelWarn:
		return h[1]
	case level >= slog.LevelInfo:
		return h[2]
	}
	return h[3]
}

// Enabled implements slog.Handler.
func (h byPriority) Enabled(ctx context.Context, level slog.Level) bool {
	return h.of(level).Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (h byPriority) Handle(ctx context.Context, r slog.Record) error {
	return h.of(r.Level).Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h byPriority) WithAttrs(attrs []slog.Attr) slog.Handler {
	for i := range h {
		h[i] = h[i].WithAttrs(attrs)
	}
	return h
}

// WithGroup implements slog.Handler.
func (h byPriority) WithGroup(name string) slog.Handler {
	for i := range h {
		h[i] = h[i].WithGroup(name)
	}
	return h
}

// prefixed writes each line, of which there is one a Write (log/slog), in one go:
// the journal takes what comes between for the beginning of a line of its own.
type prefixed struct {
	w      io.Writer
	prefix string
}

func (p prefixed) Write(line []byte) (int, error) {
	n, err := p.w.Write(append([]byte(p.prefix), line...))
	return max(0, n-len(p.prefix)), err
}

// toJournal reports whether w is the journal: systemd says in $JOURNAL_STREAM which
// device and inode that is, and a program's standard error may have been led
// elsewhere since (systemd.exec(5)).
func toJournal(w io.Writer) bool {
	device, inode, ok := strings.Cut(os.Getenv("JOURNAL_STREAM"), ":")
	f, isFile := w.(*os.File)
	if !ok || !isFile {
		return false
	}
	fi, err := f.Stat()
	if err != nil {
		return false
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	return ok && strconv.FormatUint(st.Dev, 10) == device && strconv.FormatUint(st.Ino, 10) == inode
}
