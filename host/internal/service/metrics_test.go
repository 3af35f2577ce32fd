package service

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nox-mesh/nox-mesh/host/internal/resource"
	"github.com/nox-mesh/nox-mesh/host/link"
	"github.com/nox-mesh/nox-mesh/host/link/client"
	"github.com/nox-mesh/nox-mesh/internal/door"
	"github.com/nox-mesh/nox-mesh/internal/metrics"
)

// An exposition is what a strict reader finds in a text: by family its type and its
// samples, these by what stands before the value.
type exposition struct {
	kinds   map[string]string
	samples map[string]float64
}

// The grammar of "Text-based format", in
// https://prometheus.io/docs/instrumenting/exposition_formats/.
var (
	helpLine   = regexp.MustCompile(`^# HELP ([a-zA-Z_:][a-zA-Z0-9_:]*) ((?:[^\\]|\\\\|\\n)*)$`)
	typeLine   = regexp.MustCompile(`^# TYPE ([a-zA-Z_:][a-zA-Z0-9_:]*) (counter|gauge|histogram|summary|untyped)$`)
	sampleLine = regexp.MustCompile(`^(([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{((?:[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\]|\\\\|\\"|\\n)*",?)*)\})?) (\S+)$`)
)

// read reads a text as strictly as the format is written, and more: each family has
// its HELP and TYPE and stands in one place, and no sample is there twice.
func read(text string) (exposition, error) {
	e := exposition{map[string]string{}, map[string]float64{}}
	if !strings.HasSuffix(text, "\n") {
		return e, errors.New("the last line does not end")
	}
	family, helped := "", ""
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if m := helpLine.FindStringSubmatch(line); m != nil {
			if e.kinds[m[1]] != "" || m[2] == "" {
				return e, fmt.Errorf("HELP again, or empty: %s", line)
			}
			helped = m[1]
			continue
		}
		if m := typeLine.FindStringSubmatch(line); m != nil {
			if family = m[1]; e.kinds[family] != "" || helped != family {
				return e, fmt.Errorf("TYPE again, or without HELP: %s", line)
			}
			e.kinds[family] = m[2]
			continue
		}
		m := sampleLine.FindStringSubmatch(line)
		if m == nil {
			return e, fmt.Errorf("no line of the format: %q", line)
		}
		if name := m[2]; name != family && !(e.kinds[family] == "summary" && (name == family+"_sum" || name == family+"_count")) {
			return e, fmt.Errorf("a sample among those of %s: %s", family, line)
		}
		value, err := strconv.ParseFloat(m[4], 64)
		if _, twice := e.samples[m[1]]; err != nil || twice {
			return e, fmt.Errorf("no number, or there already: %s", line)
		}
		e.samples[m[1]] = value
	}
	return e, nil
}

// scrape asks for the text as another program would.
func scrape(t *testing.T, cfg Config) string {
	t.Helper()
	c := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return door.Dial(ctx, cfg.Layout.HostSocket())
	}}}
	res, err := c.Get("http://host/v1/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != 200 || res.Header.Get("Content-Type") != metrics.ContentType {
		t.Fatalf("%s, %s, %v", res.Status, res.Header, err)
	}
	return string(text)
}

// three is a declaration of three files, of which the second cannot be.
const three = `{"schema": 1, "name": "a", "resources": [
	{"id": "a", "type": "file", "path": "/srv/a", "content": "1"},
	{"id": "b", "type": "file", "path": "/srv/b", "content": "1"},
	{"id": "c", "type": "file", "path": "/srv/c \"\\ü", "content": "1", "after": ["b"]}]}`

// answering is a service that answers at its door.
func answering(t *testing.T, b beat) *Service {
	t.Helper()
	s, err := Open(t.Context(), machine(t))
	if err != nil {
		t.Fatal(err)
	}
	s.served = true
	s.start(b)
	t.Cleanup(func() { s.Close() })
	serveAt(t, s.Config, s.handler())
	return s
}

func TestMetricsSayWhatIsKnown(t *testing.T) {
	s := answering(t, beat{every: time.Hour, alive: func() {}})
	if err := os.MkdirAll(s.Layout.Path("/srv/b"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Apply(t.Context(), []byte(three)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.Layout.Path("/srv/a"), []byte("drifted"), 0o644); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := s.Pass(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	text := scrape(t, s.Config)
	e, err := read(text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	const b, c = `key="file:/srv/b"`, `key="file:/srv/c \"\\ü"`
	for sample, want := range map[string]float64{
		`mesh_host_up`:       1,
		`mesh_host_enrolled`: 0,
		`mesh_host_passes_total{trigger="declaration"}`:                               1,
		`mesh_host_passes_total{trigger="asked"}`:                                     2,
		`mesh_host_passes_total{trigger="timer"}`:                                     0,
		`mesh_host_pass_duration_seconds_count`:                                       3,
		`mesh_host_passes_broken_total`:                                               0,
		`mesh_host_drift_repaired_total`:                                              1,
		`mesh_host_resources{outcome="unchanged"}`:                                    1,
		`mesh_host_resources{outcome="failed"}`:                                       1,
		`mesh_host_resources{outcome="skipped"}`:                                      1,
		`mesh_host_resources{outcome="held"}`:                                         0,
		`mesh_host_resources_not_as_declared`:                                         2,
		`mesh_host_resource_not_as_declared{` + b + `,outcome="failed",type="file"}`:  1,
		`mesh_host_resource_not_as_declared{` + c + `,outcome="skipped",type="file"}`: 1,
		`mesh_host_resource_not_as_declared_passes{` + b + `,type="file"}`:            3,
		`mesh_host_reports_queued`:                                                    0,
		`mesh_host_store_writable`:                                                    1,
		`mesh_host_content_blobs`:                                                     0,
		`mesh_host_watchdog_interval_seconds`:                                         3600,
	} {
		if got, there := e.samples[sample]; !there || got != want {
			t.Errorf("%s is %v (%v), want %v", sample, got, there, want)
		}
	}
	since := e.samples[`mesh_host_resource_not_as_declared_since_timestamp_seconds{`+b+`,type="file"}`]
	ended, began := e.samples["mesh_host_last_pass_timestamp_seconds"], e.samples["mesh_host_start_timestamp_seconds"]
	if now := float64(time.Now().Unix()); since < began || since > ended || ended > now+1 || began < now-600 {
		t.Errorf("began %f, failing since %f, last pass %f", began, since, ended)
	}
	if _, there := e.samples["mesh_host_last_successful_pass_timestamp_seconds"]; there {
		t.Error("no pass was good")
	}
	for name, kind := range e.kinds {
		if !strings.HasPrefix(name, "mesh_host_") || (kind == "counter") != strings.HasSuffix(name, "_total") {
			t.Errorf("a %s is not called %s", kind, name)
		}
	}
	// And now all is well.
	if err := os.Remove(s.Layout.Path("/srv/b")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Pass(t.Context()); err != nil {
		t.Fatal(err)
	}
	if e, err = read(scrape(t, s.Config)); err != nil {
		t.Fatal(err)
	}
	good, there := e.samples["mesh_host_last_successful_pass_timestamp_seconds"]
	if !there || good < ended || e.samples["mesh_host_resources_not_as_declared"] != 0 {
		t.Errorf("good at %f (%v), %v are not", good, there, e.samples["mesh_host_resources_not_as_declared"])
	}
	for sample := range e.samples {
		if strings.HasPrefix(sample, "mesh_host_resource_not") {
			t.Errorf("there still is %s", sample)
		}
	}
}

func TestMetricsLookAtNothing(t *testing.T) {
	var looks atomic.Int64
	hang := make(chan struct{})
	s := answering(t, beat{})
	if _, err := s.Apply(t.Context(), page("a", "1")); err != nil {
		t.Fatal(err)
	}
	s.engine.Kinds["file"] = looking{check: func() (resource.State, error) {
		looks.Add(1)
		<-hang
		return resource.State{Same: true}, nil
	}}
	before := s.store.Writes()
	for range 100 {
		scrape(t, s.Config)
	}
	if n := looks.Load(); n != 0 || s.store.Writes() != before {
		t.Errorf("%d looks, %d pages written", n, s.store.Writes()-before)
	}
	// Nor do they wait for a pass that hangs.
	go s.loop.Trigger(s.ctx, "timer")
	for looks.Load() == 0 {
		<-time.After(time.Millisecond)
	}
	scrape(t, s.Config)
	close(hang)
}

func TestMetricsOfManyFailuresAreBounded(t *testing.T) {
	s := answering(t, beat{})
	report := link.Report{}
	for i := range 5000 {
		report.Resources = append(report.Resources, link.ResourceReport{Key: fmt.Sprintf("file:/srv/%d", i), Outcome: "failed"})
	}
	s.tally.date(&report, true)
	s.mu.Lock()
	s.last = &report
	s.mu.Unlock()
	e, err := read(scrape(t, s.Config))
	if err != nil {
		t.Fatal(err)
	}
	if n := len(e.samples); e.samples["mesh_host_resources_not_as_declared"] != 5000 || n > 400 {
		t.Errorf("%v are not as declared, in %d samples", e.samples["mesh_host_resources_not_as_declared"], n)
	}
}

func TestMetricsOfTheLink(t *testing.T) {
	for name, c := range map[string]struct {
		state client.State
		want  string
	}{
		"up":      {client.State{Connected: true, Since: time.Unix(100, 0)}, "connected 1 since 100 revoked 0"},
		"down":    {client.State{Since: time.Unix(200, 0), Error: "no route"}, "connected 0 since 200 revoked 0"},
		"never":   {client.State{Error: "no route"}, "connected 0 since 0 revoked 0"},
		"revoked": {client.State{Revoked: "it was lost"}, "connected 0 since 0 revoked 1"},
	} {
		var m metrics.Set
		var text bytes.Buffer
		tellLink(&m, c.state)
		if err := metrics.Write(&text, m.Families); err != nil {
			t.Fatal(err)
		}
		e, err := read(text.String())
		at, told := e.samples["mesh_host_link_since_timestamp_seconds"]
		got := fmt.Sprintf("connected %v since %v revoked %v", e.samples["mesh_host_link_connected"], at, e.samples["mesh_host_link_revoked"])
		if err != nil || got != c.want || told == c.state.Since.IsZero() {
			t.Errorf("%s: %s, %v\n%s", name, got, err, text.String())
		}
	}
}

// Without a service a command tells what is kept, and that none runs.
func TestMetricsWithoutAService(t *testing.T) {
	s := working(t, machine(t))
	if _, err := s.Apply(t.Context(), page("a", "1")); err != nil {
		t.Fatal(err)
	}
	families, err := s.Metrics(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := metrics.Write(&text, families); err != nil {
		t.Fatal(err)
	}
	e, err := read(text.String())
	if _, counted := e.samples["mesh_host_passes_broken_total"]; err != nil || counted || e.samples["mesh_host_up"] != 0 || e.samples[`mesh_host_resources{outcome="applied"}`] != 1 {
		t.Errorf("%v\n%s", err, text.String())
	}
}

// TestTheReaderOfTheTextIsStrict: a judge that takes anything judges nothing.
func TestTheReaderOfTheTextIsStrict(t *testing.T) {
	const head = "# HELP a b\n# TYPE a gauge\n"
	for _, bad := range []string{"a 1", "a 1\n", head + "b 1\n", head + "a{x=\"\"\"} 1\n", head + "a{x=\"\\\"} 1\n", head + "a{x=\"\n\"} 1\n", head + "a one\n",
		head + "a 1\na 1\n", head + head, "# TYPE a gauge\na 1\n", "# HELP a \\x\n# TYPE a gauge\n", head + "a-b 1\n"} {
		if e, err := read(bad); err == nil {
			t.Errorf("%q is read as %v", bad, e)
		}
	}
	if e, err := read(head + "a{x=\"\\\"\\\\\\n\"} 1\n"); err != nil || len(e.samples) != 1 {
		t.Errorf("%v, %v", e, err)
	}
}
