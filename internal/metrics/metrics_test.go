package metrics

import (
	"bytes"
	"math"
	"testing"
	"time"
)

func TestTheTextIsThatOfTheFormat(t *testing.T) {
	var s Set
	s.Begin(Gauge, "x_info", "A \\ and\na \"line\".")
	s.Add(1, "version", "1.0", "path", "C:\\a \"b\"\nc", "bad", "\xff")
	s.Begin(Gauge, "x_none", "Nothing.")
	s.Begin(Summary, "x_seconds", "How long.")
	s.Sum(0.25, 3)
	s.At("x_at_timestamp_seconds", "When.", time.UnixMilli(1764529721123))
	s.At("x_never_timestamp_seconds", "When.", time.Time{})
	s.One(Counter, "x_total", "Many.", 1e20)
	s.One(Gauge, "x_large", "More.", math.Inf(1))
	s.One(Gauge, "x_true", "Is it?", Truth(true))
	s.One(Gauge, "x_false", "Is it?", Truth(false))
	var b bytes.Buffer
	if err := Write(&b, s.Families); err != nil {
		t.Fatal(err)
	}
	const want = `# HELP x_info A \\ and\na "line".
# TYPE x_info gauge
x_info{bad="�",path="C:\\a \"b\"\nc",version="1.0"} 1
# HELP x_seconds How long.
# TYPE x_seconds summary
x_seconds_sum 0.25
x_seconds_count 3
# HELP x_at_timestamp_seconds When.
# TYPE x_at_timestamp_seconds gauge
x_at_timestamp_seconds 1764529721.123
# HELP x_total Many.
# TYPE x_total counter
x_total 1e+20
# HELP x_large More.
# TYPE x_large gauge
x_large +Inf
# HELP x_true Is it?
# TYPE x_true gauge
x_true 1
# HELP x_false Is it?
# TYPE x_false gauge
x_false 0
`
	if got := b.String(); got != want {
		t.Errorf("\n%s", got)
	}
}
