package command

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/nox-mesh/nox-mesh/host/internal/apply"
	"github.com/nox-mesh/nox-mesh/host/internal/service"
	"github.com/nox-mesh/nox-mesh/internal/cli"
)

func TestH08StatusSaysForHowLongAResourceHangs(t *testing.T) {
	for seconds, want := range map[int64]string{
		3: "with container:web for 3 s", 5*60 + 10: "with container:web for 5 min", 3 * 60 * 60: "with container:web for 3 h",
	} {
		// The clock was set since: it says 1970.
		st := service.Status{State: service.StateHosted, Running: true, Busy: &apply.Busy{Key: "container:web", Since: time.Unix(0, 0), Seconds: seconds}}
		var out bytes.Buffer
		p := &program{std: cli.Stdio{Out: &out}}
		if err := p.print(st, func() error { return p.printStatus(st) }); err != nil {
			t.Fatal(err)
		}
		found := ""
		for line := range strings.Lines(out.String()) {
			if what, ok := strings.CutPrefix(line, "busy "); ok {
				found = strings.TrimSpace(what)
			}
		}
		if found != want {
			t.Errorf("%q, want %q in\n%s", found, want, out.String())
		}
		out.Reset()
		p.json = true
		if err := p.print(st, nil); err != nil {
			t.Fatal(err)
		}
		var program struct {
			Busy struct {
				Key     string
				Seconds int64
			}
		}
		if err := json.Unmarshal(out.Bytes(), &program); err != nil || program.Busy.Key != "container:web" || program.Busy.Seconds != seconds {
			t.Errorf("%+v, %v:\n%s", program, err, out.String())
		}
	}
}
