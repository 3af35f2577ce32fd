package service

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/nox-mesh/nox-mesh/internal/child"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// journalctl is where the program of systemd's is.
var journalctl = []string{"/usr/bin/journalctl", "/bin/journalctl"}

// journalProgram is where it is on this machine, or "".
func journalProgram() string {
	for _, program := range journalctl {
		if fi, err := os.Stat(program); err == nil && fi.Mode().IsRegular() {
			return program
		}
	}
	return ""
}

// A journal is what the unit of a process has in the journal. It is read by
// journalctl(1), which knows all forms of a journal there were and will be.
type journal struct {
	program string
	q       LogQuery
}

func openJournal(q LogQuery) (output, error) {
	if program := journalProgram(); program != "" {
		return journal{program, q}, nil
	}
	return nil, fault.Failedf("cannot show logs of %q: they are in the journal, and there is no %s", q.Name, journalctl[0]).
		Hint("install it: it comes with systemd")
}

// asked is how the journal is asked. It is by _SYSTEMD_UNIT and not by --unit, which
// also finds what systemd itself says of the unit (journalctl(1)).
func (j journal) asked(output ...string) child.Command {
	lines := "all"
	if j.q.Lines > 0 {
		lines = strconv.Itoa(j.q.Lines)
	}
	args := append([]string{"--no-pager", "--quiet", "--lines=" + lines}, output...)
	if !j.q.Since.IsZero() {
		args = append(args, fmt.Sprintf("--since=@%d.%06d", j.q.Since.Unix(), j.q.Since.Nanosecond()/1000))
	}
	if j.q.Follow {
		args = append(args, "--follow")
	}
	return child.Command{Path: j.program, Args: append(args, "_SYSTEMD_UNIT=nox-"+j.q.Name+".service")}
}

func (j journal) bytes(ctx context.Context, out io.Writer) error {
	if err := child.Stream(ctx, j.asked("--output=cat"), out); err != nil {
		return fmt.Errorf("cannot show logs of %q: %w", j.q.Name, err)
	}
	return nil
}

func (j journal) lines(ctx context.Context, tell func(LogLine) error) error {
	r, w := io.Pipe()
	ended := make(chan error, 1)
	streaming, end := context.WithCancel(ctx)
	defer end()
	go func() {
		err := child.Stream(streaming, j.asked("--output=export", "--output-fields=MESSAGE"), w)
		w.CloseWithError(err) // io.EOF for nil
		ended <- err
	}()
	err := readExport(r, tell)
	end() // who takes no more does not wait for one more entry
	_ = r.CloseWithError(io.ErrClosedPipe)
	if streamed := <-ended; streamed != nil && (err == nil || errors.Is(err, streamed)) {
		err = streamed
	}
	if err == nil || ctx.Err() != nil { // who is told to end may end in the middle of an entry
		return nil
	}
	return fmt.Errorf("cannot show logs of %q: %w", j.q.Name, err)
}

// maxField bounds a field of an entry that is no message.
const maxField = 4 << 10

// readExport reads entries in the Journal Export Format
// (https://systemd.io/JOURNAL_EXPORT_FORMATS): fields NAME=TEXT, one a line, or NAME
// on a line, then eight bytes of a length, little end first, as many bytes, and the
// end of a line; an empty line after each entry.
func readExport(r io.Reader, tell func(LogLine) error) error {
	in := bufio.NewReaderSize(r, 64<<10)
	var entry LogLine
	some := false
	for {
		head, err := in.ReadSlice('\n')
		if errors.Is(err, io.EOF) && len(head) == 0 {
			return nil
		}
		whole := err == nil
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return fmt.Errorf("cannot read the journal: it breaks off: %w", err)
		}
		if whole && len(head) == 1 {
			if some {
				if err := tell(entry); err != nil {
					return err
				}
			}
			entry, some = LogLine{}, false
			continue
		}
		name, text, inline := bytes.Cut(bytes.TrimSuffix(head, []byte("\n")), []byte("="))
		field, most := string(name), maxField
		if len(field) > maxField {
			return errors.New("cannot read the journal: a field has no name")
		}
		if field == "MESSAGE" {
			most = maxLogLine
		}
		var cut bool
		switch {
		case inline:
			text, cut, err = restOfLine(in, text, whole, most)
		case whole:
			text, cut, err = measured(in, most)
		default:
			err = errors.New("a field has no end")
		}
		if err != nil {
			return fmt.Errorf("cannot read the journal: %w", err)
		}
		switch field {
		case "MESSAGE":
			entry.Text, entry.Cut, some = string(text), cut, true
		case "__REALTIME_TIMESTAMP":
			if usec, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil {
				entry.Time = time.UnixMicro(usec).UTC()
			}
		}
	}
}

// restOfLine is text with the rest of its line, if it is not whole, of which no more
// than most is kept.
func restOfLine(in *bufio.Reader, text []byte, whole bool, most int) (kept []byte, cut bool, err error) {
	for {
		keep := min(len(text), most-len(kept))
		kept, cut = append(kept, text[:keep]...), cut || keep < len(text)
		if whole {
			return kept, cut, nil
		}
		text, err = in.ReadSlice('\n')
		if whole = err == nil; whole {
			text = text[:len(text)-1]
		} else if !errors.Is(err, bufio.ErrBufferFull) {
			return nil, false, err
		}
	}
}

// measured is a value that its length goes before.
func measured(in *bufio.Reader, most int) (kept []byte, cut bool, err error) {
	var size uint64
	if err := binary.Read(in, binary.LittleEndian, &size); err != nil {
		return nil, false, err
	}
	const largest = 1 << 40
	if size > largest {
		return nil, false, fmt.Errorf("a field says that it has %d bytes", size)
	}
	kept = make([]byte, min(int64(size), int64(most)))
	if _, err := io.ReadFull(in, kept); err != nil {
		return nil, false, err
	}
	if _, err := io.CopyN(io.Discard, in, int64(size)-int64(len(kept))); err != nil {
		return nil, false, err
	}
	if end, err := in.ReadByte(); err != nil || end != '\n' {
		return nil, false, errors.Join(err, errors.New("a field does not end where it says"))
	}
	return kept, int64(size) > int64(most), nil
}
