package progress

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"
)

func TestHowALineLooks(t *testing.T) {
	half := work{
		doing: "reading", what: "site.bundle.tar", rate: 85 * mib,
		at: At{Title: "nox-mesh-controller", Done: 412 * mib, Total: 1024 * mib},
	}
	unknown, here, zero := half, half, half
	unknown.at.Total = 0
	here.here = true
	zero.at, zero.rate = At{}, 0
	for _, c := range []struct {
		w       work
		columns int
		want    string
	}{
		{half, 200, "reading nox-mesh-controller                                    412 MiB/1.0 GiB   40%  [################------------------------]    85 MiB/s  7 s left"},
		{half, 80, "nox-mesh-cont…   412 MiB/1.0 GiB   40%  [####-------]    85 MiB/s  7 s left"},
		{half, 40, "nox-mesh-con…   412 MiB/1.0 GiB   40%"},
		{half, 24, "nox-mesh-contr…   40%"},
		{half, 20, "40%"},
		{half, 6, "40%"},
		{half, 5, ""},
		{half, 1, ""},
		{half, 0, "nox-mesh-cont…   412 MiB/1.0 GiB   40%  [####-------]    85 MiB/s  7 s left"},
		{unknown, 80, "reading nox-mesh-controller                               412 MiB    85 MiB/s"},
		{unknown, 40, "nox-mesh-contr…   412 MiB    85 MiB/s"},
		{here, 200, "reading nox-mesh-controller (already here)                     412 MiB/1.0 GiB   40%  [################------------------------]    85 MiB/s  7 s left"},
		{zero, 80, "reading site.bundle.tar                                       0 B"},
	} {
		if got := c.w.draw(c.columns); got != c.want {
			t.Errorf("%d columns:\n%q, want\n%q", c.columns, got, c.want)
		}
	}
}

// width is that of the few titles below, counted by hand: one cell a character
// but for those that are wide.
func width(s string) int {
	n := utf8.RuneCountInString(s)
	for _, r := range s {
		if strings.ContainsRune("日本語한국어ｆ🚀", r) {
			n++
		}
	}
	return n
}

func TestNoLineIsWiderThanTheTerminal(t *testing.T) {
	for _, title := range []string{
		"", "a", strings.Repeat("long", 64), strings.Repeat("日本語", 30), strings.Repeat("한국어🚀", 20), "ｆｆｆ",
		"sha256:" + strings.Repeat("0123456789abcdef", 4), strings.Repeat("e\u0301", 99),
	} {
		for _, total := range []int64{0, 1, 1023 * mib, 1<<63 - 1} {
			for columns := 1; columns <= 300; columns++ {
				w := work{doing: "reading", what: title, rate: 1023 * mib, at: At{Title: title, Done: total / 2, Total: total}}
				line := w.draw(columns)
				if width(line) > max(columns-3, 0) {
					t.Fatalf("%q has %d cells, %d columns", line, width(line), columns)
				}
				if columns > 6 && title != "" && strings.TrimSpace(line) == "" {
					t.Fatalf("%d columns: nothing is said of %q", columns, title)
				}
			}
		}
	}
}

func TestATitleCannotDriveTheTerminal(t *testing.T) {
	r := New(&log{}, Options{})
	defer r.Close()
	r.Begin("reading", "x\x1b]0;owned\a")
	for _, title := range []string{
		"\x1b[2J\x1b[H", "a\rb", "a\nb", "\u009b31m", "\x9b31m", "\u202egnp.exe", "a\tb\bc\x7f", "\xff\xfe", "\u200b\u2066",
	} {
		r.At(At{Title: title, Done: 1, Total: 2})
		for _, line := range []string{r.now().draw(80), string((&lines{said: true}).tick(work{elapsed: time.Hour, what: r.now().what, at: r.now().at}))} {
			for _, c := range strings.TrimSuffix(line, "\n") {
				if !unicode.IsPrint(c) {
					t.Errorf("%q: %q is written to the terminal", title, c)
				}
			}
		}
	}
}

// TestNorCanAnEvent: its value is the same, its bytes can be looked at.
func TestNorCanAnEvent(t *testing.T) {
	const title = "\u009b31m\u202e"
	w := work{doing: "reading", what: title}
	w.at.Title = title
	line := events{}.tick(w)
	var e event
	if err := json.Unmarshal(line, &e); err != nil || e.Title != title || e.What != title {
		t.Errorf("%s, %v", line, err)
	}
	for _, r := range strings.TrimSuffix(string(line), "\n") {
		if !unicode.IsPrint(r) {
			t.Errorf("%U is in %q", r, line)
		}
	}
}

func TestBytesAreShort(t *testing.T) {
	for n, want := range map[int64]string{
		-1: "0 B", 0: "0 B", 1: "1 B", 1023: "1023 B", 1024: "1.0 KiB", 1536: "1.5 KiB", 10188: "9.9 KiB", 10189: "10 KiB",
		1023*1024 + 511: "1023 KiB", 1023*1024 + 512: "1.0 MiB", 412 * mib: "412 MiB", 8 << 30: "8.0 GiB", 1<<63 - 1: "8.0 EiB",
	} {
		if got := Bytes(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

func TestOnlyWhatIsDoneIsAHundredPercent(t *testing.T) {
	for _, c := range []struct {
		done, total int64
		want        int
		known       bool
	}{
		{0, 0, 0, false}, {5, 0, 0, false}, {0, 5, 0, true}, {-1, 5, 0, true}, {999, 1000, 99, true},
		{1<<62 - 1, 1 << 62, 99, true}, {5, 5, 100, true}, {6, 5, 100, true},
	} {
		if got, known := (work{at: At{Done: c.done, Total: c.total}}).percent(); got != c.want || known != c.known {
			t.Errorf("%d of %d: %d %v, want %d %v", c.done, c.total, got, known, c.want, c.known)
		}
	}
}
