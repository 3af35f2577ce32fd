package service

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// printed makes the folder of a process, with what it printed.
func printed(t *testing.T, cfg Config, name, text string) {
	t.Helper()
	dir := filepath.Join(cfg.Layout.Processes(), name)
	if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "output.log"), []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

func TestLogsOfAProcessWithoutAJournal(t *testing.T) {
	cfg := machine(t)
	printed(t, cfg, "web", "one\n\x1b[31m\xff\nlast")
	var out bytes.Buffer
	if err := LogBytes(t.Context(), cfg, LogQuery{Name: "web"}, &out); err != nil || out.String() != "one\n\x1b[31m\xff\nlast" {
		t.Errorf("%q, %v", out.String(), err)
	}
	var lines []LogLine
	tell := func(l LogLine) error { lines = append(lines, l); return nil }
	if err := LogLines(t.Context(), cfg, LogQuery{Name: "web", Lines: 2}, tell); err != nil || !slices.Equal(lines, []LogLine{{Text: "\x1b[31m\xff"}, {Text: "last"}}) {
		t.Errorf("%+v, %v", lines, err)
	}
	err := LogBytes(t.Context(), cfg, LogQuery{Name: "web", Since: time.Now()}, &out)
	if fault.KindOf(err) != fault.Failed || !strings.Contains(err.Error(), "without times") || !strings.Contains(fault.RemedyOf(err), "--lines") {
		t.Errorf("%v", err)
	}
	full := errors.New("full")
	if err := LogLines(t.Context(), cfg, LogQuery{Name: "web"}, func(LogLine) error { return full }); !errors.Is(err, full) {
		t.Errorf("%v", err)
	}
}

func TestAnUnknownProcessNamesThoseThereAre(t *testing.T) {
	cfg := machine(t)
	for _, c := range []struct{ name, says, remedy string }{
		{"web", `there is no process "web" here`, "none is declared"},
		{"../../etc", `there is no process "../../etc" here`, "none is declared"},
		{"mesh-host", `"mesh-host" is the host itself`, "journalctl -u mesh-host"},
	} {
		err := LogBytes(t.Context(), cfg, LogQuery{Name: c.name}, io.Discard)
		if err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(fault.RemedyOf(err), c.remedy) {
			t.Errorf("%s: %v; %s", c.name, err, fault.RemedyOf(err))
		}
	}
	printed(t, cfg, "worker", "")
	printed(t, cfg, "web", "")
	if err := os.Mkdir(filepath.Join(cfg.Layout.Processes(), ".old.removed"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := LogBytes(t.Context(), cfg, LogQuery{Name: "wbe"}, io.Discard); fault.KindOf(err) != fault.Failed || fault.RemedyOf(err) != "name one that is: web, worker" {
		t.Errorf("%v; %s", err, fault.RemedyOf(err))
	}
	for i := range 30 {
		printed(t, cfg, fmt.Sprintf("p%d", i), "")
	}
	if err := LogBytes(t.Context(), cfg, LogQuery{Name: "wbe"}, io.Discard); !strings.Contains(fault.RemedyOf(err), ", and 12 more") {
		t.Errorf("%v; %s", err, fault.RemedyOf(err))
	}
}

// What is declared and has no folder says why it has nothing to show.
func TestLogsOfWhatIsDeclaredAndNoProcessYet(t *testing.T) {
	cfg := machine(t)
	s := working(t, cfg)
	if err := os.MkdirAll(cfg.Layout.Path("/srv/b"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Apply(t.Context(), []byte(`{"schema": 1, "name": "a", "resources": [
		{"id": "b", "type": "file", "path": "/srv/b", "content": ""},
		{"id": "web", "type": "process", "name": "web", "command": ["/bin/web"], "after": ["b"]},
		{"id": "db", "type": "container", "name": "db", "image": "docker.io/library/db@sha256:`+strings.Repeat("0", 64)+`"}]}`)); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for name, says := range map[string]string{
		"web": `process "web" has said nothing yet, its outcome is "skipped"; mesh-host status says what it waits for`,
		"db":  `"db" is a container, whose runtime keeps what it says; podman logs db, or docker logs db`,
	} {
		err := LogBytes(t.Context(), cfg, LogQuery{Name: name}, io.Discard)
		if err == nil || err.Error()+"; "+fault.RemedyOf(err) != "cannot show logs: "+says {
			t.Errorf("%v; %s", err, fault.RemedyOf(err))
		}
	}
}

// TestALineOfTenMegabytesIsCut: it costs no more memory than its first mebibyte.
func TestALineOfTenMegabytesIsCut(t *testing.T) {
	const ten = 10 << 20
	told := []string{}
	tell := func(l LogLine) error {
		told = append(told, fmt.Sprintf("%d %v %s", len(l.Text), l.Cut, l.Text[max(0, len(l.Text)-3):]))
		return nil
	}
	want := []string{"5 false rst", "1048576 true xxx", "4 false ast"}
	x := bytes.Repeat([]byte("x"), 64<<10)
	part := func(w io.Writer) {
		for range ten / len(x) {
			_, _ = w.Write(x)
		}
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)

	w := &lineWriter{tell: tell}
	_, _ = w.Write([]byte("first\n"))
	part(w)
	_, _ = w.Write([]byte("\nlast"))
	if err := w.close(); err != nil || !slices.Equal(told, want) {
		t.Errorf("printed: %q, %v", told, err)
	}
	for _, how := range []string{"on a line", "with a length"} {
		told = nil
		r, in := io.Pipe()
		go func() {
			_, _ = in.Write([]byte("MESSAGE=first\n\n"))
			if how == "on a line" {
				_, _ = in.Write([]byte("MESSAGE="))
			} else {
				_, _ = in.Write(binary.LittleEndian.AppendUint64([]byte("MESSAGE\n"), ten))
			}
			part(in)
			_, _ = in.Write([]byte("\n\nMESSAGE=last\n\n"))
			in.Close()
		}()
		if err := readExport(r, tell); err != nil || !slices.Equal(told, want) {
			t.Errorf("%s: %q, %v", how, told, err)
		}
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 24<<20 { // three such lines, and what append left behind
		t.Errorf("%d MiB were allocated", n>>20)
	}
}

// The form is that of https://systemd.io/JOURNAL_EXPORT_FORMATS, whose example this
// follows: what has a line break, or is no text, has a length.
func TestTheExportOfAJournalIsRead(t *testing.T) {
	binaryMessage := "MESSAGE\n" + string(binary.LittleEndian.AppendUint64(nil, 12)) + "two\nlines \xff\x00\n"
	text := "__CURSOR=s=739ad463348b4ceca5a9e69c95a3c93f;i=4ece7\n__REALTIME_TIMESTAMP=1342540861416351\n__MONOTONIC_TIMESTAMP=4422\n_BOOT_ID=6\nMESSAGE=a=b\n\n" +
		"__REALTIME_TIMESTAMP=1342540861416352\n" + binaryMessage + "\n" +
		"__REALTIME_TIMESTAMP=1342540861416353\n\n" + // has no message
		"MESSAGE=\n\n"
	var got []string
	tell := func(l LogLine) error {
		got = append(got, fmt.Sprintf("%d %q", l.Time.UnixMicro()%1000, l.Text))
		return nil
	}
	zero := time.Time{}.UnixMicro() % 1000
	want := []string{`351 "a=b"`, `352 "two\nlines \xff\x00"`, fmt.Sprintf(`%d ""`, zero)}
	if err := readExport(strings.NewReader(text), tell); err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v", got, err)
	}
	for _, bad := range []string{"MESSAGE=cut", "MESSAGE\n\x05\x00", binaryMessage[:20], "MESSAGE\n\xff\xff\xff\xff\xff\xff\xff\xff", strings.Repeat("X", 100<<10),
		"MESSAGE\n" + string(binary.LittleEndian.AppendUint64(nil, 1)) + "ab\n"} {
		if err := readExport(strings.NewReader(bad), tell); err == nil {
			t.Errorf("%.30q is read", bad)
		}
	}
}

// aJournalctl is one that says how it was called, and what is given.
func aJournalctl(t *testing.T, script string) journal {
	t.Helper()
	path := filepath.Join(t.TempDir(), "journalctl")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	return journal{program: path, q: LogQuery{Name: "web"}}
}

func TestTheJournalIsAskedForTheUnit(t *testing.T) {
	j := aJournalctl(t, `echo "$@"`)
	j.q = LogQuery{Name: "web", Lines: 5, Since: time.UnixMicro(1342540861416351), Follow: true}
	var out bytes.Buffer
	if err := j.bytes(t.Context(), &out); err != nil || out.String() != "--no-pager --quiet --lines=5 --output=cat --since=@1342540861.416351 --follow _SYSTEMD_UNIT=nox-web.service\n" {
		t.Errorf("%s%v", out.String(), err)
	}
	j = aJournalctl(t, `echo "cannot open" >&2; exit 1`)
	tell := func(LogLine) error { return nil }
	for how, err := range map[string]error{"bytes": j.bytes(t.Context(), io.Discard), "lines": j.lines(t.Context(), tell)} {
		if err == nil || !strings.HasPrefix(err.Error(), `cannot show logs of "web": journalctl `) || !strings.HasSuffix(err.Error(), "exit status 1: cannot open") {
			t.Errorf("%s: %v", how, err)
		}
	}
	// Who takes no more ends a journalctl that follows.
	j = aJournalctl(t, `echo MESSAGE=hello; echo; exec sleep 3600`)
	full := errors.New("full")
	if err := j.lines(t.Context(), func(LogLine) error { return full }); !errors.Is(err, full) {
		t.Errorf("%v", err)
	}
}

func TestAMissingJournalctlHasARemedy(t *testing.T) {
	was := journalctl
	defer func() { journalctl = was }()
	journalctl = []string{filepath.Join(t.TempDir(), "journalctl")}
	if _, err := openJournal(LogQuery{Name: "web"}); err == nil || fault.RemedyOf(err) == "" {
		t.Errorf("%v", err)
	}
}
