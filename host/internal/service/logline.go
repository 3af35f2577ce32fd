package service

import "bytes"

// A lineWriter tells of each line that is written to it. It keeps no more of one than
// a LogLine has.
type lineWriter struct {
	tell func(LogLine) error
	line []byte
	cut  bool
	some bool // a line has begun
}

func (w *lineWriter) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		part, after, ended := bytes.Cut(rest, []byte("\n"))
		keep := min(len(part), maxLogLine-len(w.line))
		w.line, w.cut, w.some = append(w.line, part[:keep]...), w.cut || keep < len(part), true
		if rest = after; !ended {
			break
		}
		if err := w.close(); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

// close tells of a line that has begun.
func (w *lineWriter) close() error {
	if !w.some {
		return nil
	}
	l := LogLine{Text: string(w.line), Cut: w.cut}
	w.line, w.cut, w.some = w.line[:0], false, false
	return w.tell(l)
}
