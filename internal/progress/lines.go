package progress

import (
	"fmt"
	"strings"
	"time"

	"github.com/nox-mesh/nox-mesh/internal/cli"
)

// Lines are rare: a log is kept, and read by people.
const (
	firstLine = 3 * time.Second  // a work that is over sooner is not spoken of
	soon      = 10 * time.Second // no two lines of a work are closer
	late      = time.Minute      // nor farther
	stride    = 10               // percent: what makes a line worth it
)

// lines is the style of a log.
type lines struct {
	said    bool          // the first line
	last    time.Duration // when the last one was said, since the beginning
	percent int           // and at what
}

func (*lines) every() time.Duration { return time.Second }

func (*lines) step(text string) []byte { return []byte(text + "\n") }

func (l *lines) begin(work) []byte {
	*l = lines{}
	return nil
}

func (l *lines) tick(w work) []byte {
	if !l.said {
		if w.elapsed < firstLine {
			return nil
		}
		l.said, l.last = true, w.elapsed
		if w.at.Total > 0 {
			return w.line(Bytes(w.at.Total))
		}
		return w.line("")
	}
	p, _ := w.percent()
	since := w.elapsed - l.last
	if since < late && (since < soon || p < l.percent+stride) {
		return nil
	}
	l.last, l.percent = w.elapsed, p-p%stride
	if w.at.Total <= 0 {
		return w.line(Bytes(w.at.Done), w.speed(), w.title())
	}
	return w.line(fmt.Sprintf("%s of %s", Bytes(w.at.Done), Bytes(w.at.Total)), fmt.Sprintf("%d%%", p), w.speed(), w.timeLeft(), w.title())
}

func (l *lines) end(w work) []byte {
	if !l.said {
		return nil
	}
	took := cli.Span(w.elapsed)
	if w.at.Done < w.at.Total {
		return w.line(fmt.Sprintf("stopped at %s of %s after %s", Bytes(w.at.Done), Bytes(w.at.Total), took))
	}
	w.rate = float64(w.at.Done-w.at.Here) / w.elapsed.Seconds()
	here := ""
	if w.at.Here > 0 {
		here = Bytes(w.at.Here) + " were already here"
	}
	return w.line(fmt.Sprintf("%s in %s", Bytes(w.at.Done), took), w.speed(), here)
}

// line is a line of what is said about the work.
func (w work) line(parts ...string) []byte {
	text := strings.TrimSpace(w.doing + " " + w.what)
	sep := ": "
	for _, p := range parts {
		if p != "" {
			text += sep + p
			sep = ", "
		}
	}
	return []byte(text + "\n")
}
