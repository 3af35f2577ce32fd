// Package progress shows how far a long work is, on standard error.
//
// Where it is shown decides how:
//
//   - on a terminal, one line that is drawn again at most ten times a second, and
//     cleared at the end: which blob, done and total, a bar, the rate, the time
//     left. Nothing is drawn for a work that is over at once, nor from the
//     background. It has no colour, so NO_COLOR asks for what is so anyway;
//   - elsewhere, and where TERM is "dumb" or not set, plain lines: when a work has
//     taken three seconds, then at each 10 % but not within ten seconds of the last
//     line, at least once a minute, and at the end;
//   - with --json, events, one JSON object a line: {"event": …} with "begin",
//     "progress" (once a second), "end" and "step". They are on standard error as
//     well, because the answer on standard output is one document that is piped
//     into a parser. A fault that follows is an object without "event";
//   - with --quiet, nothing, --json or not.
//
// Work never waits for it. At is two assignments under a lock; a goroutine draws.
// A terminal that is stopped (^S) or gone, or a pipe that nobody reads, holds that
// goroutine up and nothing else: the end waits for it a quarter of a second, then
// goes on without. A write that fails was the last.
//
// What it shows of titles cannot drive the terminal, whoever signed them. A line
// never wraps as long as the window is not made smaller between asking for its
// size and writing.
package progress

import (
	"cmp"
	"io"
	"os"
	"sync"
	"time"

	"github.com/nox-mesh/nox-mesh/internal/cli"
	"github.com/nox-mesh/nox-mesh/internal/clock"
)

// Options says how to show.
type Options struct {
	// JSON asks for events, Quiet for nothing.
	JSON, Quiet bool
	// Clock is the system's if nil, Getenv is os.Getenv.
	Clock  clock.Clock
	Getenv func(string) string
}

// At is how far a work is.
type At struct {
	// Title names what is being worked on.
	Title string
	// Done and Total are bytes; a Total of 0 is not known.
	Done, Total int64
	// Here are those of Done that were there already, and cost nothing.
	Here int64
}

// A Reporter shows one work at a time. Its methods may be called from any
// goroutine. A nil Reporter shows nothing.
type Reporter struct {
	clock clock.Clock
	style style

	mu      sync.Mutex
	work    work
	working bool
	meter   meter
	text    []byte // composed, to be written
	closed  bool

	to  io.Writer
	pen *pen // nil until there is something to write
}

// A work is what is being done, as far as it is known at one moment.
type work struct {
	// doing is a verb, as in "reading"; what is its object.
	doing, what string
	at          At
	begun       time.Time
	// here says that what went by last was here already.
	here    bool
	elapsed time.Duration
	// rate is in bytes a second, over the last seconds.
	rate float64
}

// A style puts into text what happened. It is called under the lock of the
// reporter, and what it returns is written in that order.
type style interface {
	step(text string) []byte
	begin(w work) []byte
	// tick is called every so often while there is work.
	tick(w work) []byte
	end(w work) []byte
	every() time.Duration
}

// New returns what shows on w; that is a terminal if w is a file that is one.
func New(w io.Writer, o Options) *Reporter {
	if o.Quiet || w == nil {
		return nil
	}
	if o.Clock == nil {
		o.Clock = clock.System
	}
	if o.Getenv == nil {
		o.Getenv = os.Getenv
	}
	r := &Reporter{clock: o.Clock, to: w, style: &lines{}}
	switch t := terminalOf(w); {
	case o.JSON:
		r.style = events{}
	case t != nil && cmp.Or(o.Getenv("TERM"), "dumb") != "dumb":
		r.style = t
	}
	return r
}

// Step says in a line what is done next. It ends the work that is shown.
func (r *Reporter) Step(text string) {
	if r == nil {
		return
	}
	r.End()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.say(r.style.step(cli.OneLine(text)))
}

// Begin begins a work, as in Begin("reading", "site.bundle.tar"), and ends the one
// before.
func (r *Reporter) Begin(doing, what string) {
	if r == nil {
		return
	}
	r.End()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	r.work = work{doing: cli.OneLine(doing), what: cli.OneLine(what), begun: r.clock.Now()}
	r.working, r.meter = true, meter{}
	r.meter.add(r.work.begun, 0)
	r.say(r.style.begin(r.work))
}

// At says how far the work is. It costs next to nothing, so it can be called for
// each read.
func (r *Reporter) At(a At) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.work.here = a.Here > r.work.at.Here
	r.work.at = a
}

// End ends the work. When it returns the line is cleared and the terminal is the
// caller's again, unless the terminal takes nothing.
func (r *Reporter) End() {
	if r == nil {
		return
	}
	r.mu.Lock()
	if !r.working {
		r.mu.Unlock()
		return
	}
	r.say(r.style.end(r.now()))
	r.working = false
	p := r.pen
	r.mu.Unlock()
	p.flush()
}

// Close ends the work, and waits for what is still to be written. Nothing is shown
// afterwards.
func (r *Reporter) Close() {
	if r == nil {
		return
	}
	r.End()
	r.mu.Lock()
	p := r.pen
	r.closed, r.pen = true, nil
	r.mu.Unlock()
	if p != nil {
		p.close()
	}
}

// now is the work as it is now.
func (r *Reporter) now() work {
	w := r.work
	now := r.clock.Now()
	w.elapsed = now.Sub(w.begun)
	if w.at.Done == 0 {
		r.meter = meter{} // waiting for the first byte is not slowness
	}
	r.meter.add(now, w.at.Done-w.at.Here)
	w.rate = r.meter.rate()
	w.at.Title = cli.OneLine(w.at.Title)
	return w
}

// maxText bounds what waits for a terminal that takes nothing.
const maxText = 64 << 10

// say hands text to the pen.
func (r *Reporter) say(text []byte) {
	if r.closed {
		return
	}
	if r.pen == nil {
		r.pen = newPen(r.to, r.style.every(), r.take)
	}
	if len(text) > 0 && len(r.text)+len(text) <= maxText {
		r.text = append(r.text, text...)
		r.pen.nudge()
	}
}

// take returns what is to be written; at a tick also what the work has come to.
func (r *Reporter) take(tick bool) []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	if tick && r.working && len(r.text) == 0 {
		r.text = r.style.tick(r.now())
	}
	text := r.text
	r.text = nil
	return text
}
