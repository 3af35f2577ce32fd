package progress

import (
	"bytes"
	"encoding/json"
	"math"
	"time"

	"github.com/nox-mesh/nox-mesh/internal/cli"
)

// events is the style for programs: one JSON object a line.
type events struct{}

// An event is a line of it.
type event struct {
	// Event is "step", "begin", "progress" or "end".
	Event string `json:"event"`
	// Step is said by a step only; Doing and What by all others.
	Step  string `json:"step,omitempty"`
	Doing string `json:"doing,omitempty"`
	What  string `json:"what,omitempty"`
	Title string `json:"title,omitempty"`
	// Done and Total are bytes; a total that is not known is left out.
	Done  *int64 `json:"done,omitempty"`
	Total int64  `json:"total,omitempty"`
	// Here are those of Done that were there already.
	Here int64 `json:"here,omitempty"`
	// Rate is in bytes a second, Left and Seconds in seconds.
	Rate    int64   `json:"rate,omitempty"`
	Left    int64   `json:"left,omitempty"`
	Seconds float64 `json:"seconds,omitempty"`
}

func (events) every() time.Duration { return time.Second }

func (events) step(text string) []byte { return event{Event: "step", Step: text}.line() }

func (events) begin(w work) []byte {
	return event{Event: "begin", Doing: w.doing, What: w.what}.line()
}

func (events) tick(w work) []byte {
	e := w.event("progress")
	left, _ := w.left()
	e.Title, e.Rate, e.Left = w.at.Title, int64(w.rate), int64(left.Seconds())
	return e.line()
}

func (events) end(w work) []byte { return w.event("end").line() }

func (w work) event(what string) event {
	return event{
		Event: what, Doing: w.doing, What: w.what,
		Done: &w.at.Done, Total: w.at.Total, Here: w.at.Here,
		Seconds: math.Round(w.elapsed.Seconds()*1000) / 1000,
	}
}

func (e event) line() []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if enc.Encode(e) != nil {
		return nil
	}
	return cli.EscapeJSON(b.Bytes())
}
