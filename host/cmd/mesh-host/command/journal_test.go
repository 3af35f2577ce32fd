package command

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/nox-mesh/nox-mesh/internal/cli"
)

// TestTheLogHasThePrioritiesOfTheJournal and only there: JOURNAL_STREAM is inherited
// by programs whose standard error is something else (systemd.exec(5)).
func TestTheLogHasThePrioritiesOfTheJournal(t *testing.T) {
	open := func() (f *os.File, stream string) {
		f, err := os.Create(filepath.Join(t.TempDir(), "log"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		var st syscall.Stat_t
		if err := syscall.Fstat(int(f.Fd()), &st); err != nil {
			t.Fatal(err)
		}
		return f, fmt.Sprintf("%d:%d", st.Dev, st.Ino)
	}
	_, another := open()
	const prioritised = "<3>level=ERROR msg=e a=1 k=\"a\\nb\"\n<4>level=WARN msg=w a=1\n<6>level=INFO msg=i a=1\n<7>level=DEBUG msg=d a=1 g.k=v\n"
	for name, c := range map[string]struct {
		stream func(own string) string
		plain  bool
	}{
		"the journal":      {func(own string) string { return own }, false},
		"something else":   {func(string) string { return another }, true},
		"no systemd":       {func(string) string { return "" }, true},
		"not what systemd": {func(string) string { return "8" }, true},
	} {
		t.Run(name, func(t *testing.T) {
			f, own := open()
			t.Setenv("JOURNAL_STREAM", c.stream(own))
			p := &program{std: cli.Stdio{Err: f}, verbose: true}
			log := p.journal().With("a", 1)
			log.Error("e", "k", "a\nb")
			log.Warn("w")
			log.Info("i")
			log.WithGroup("g").Debug("d", "k", "v")
			b, err := os.ReadFile(f.Name())
			if err != nil {
				t.Fatal(err)
			}
			if !c.plain && string(b) != prioritised {
				t.Errorf("%s", b)
			}
			if c.plain && (string(b[:5]) != "time=" || len(b) < 100) {
				t.Errorf("%s", b)
			}
		})
	}
	// It keeps to the level, and to a writer that is no file.
	f, own := open()
	t.Setenv("JOURNAL_STREAM", own)
	(&program{std: cli.Stdio{Err: f}, quiet: true}).journal().Warn("w")
	if b, err := os.ReadFile(f.Name()); err != nil || len(b) != 0 {
		t.Errorf("%q, %v", b, err)
	}
	if toJournal(io.Discard) || !toJournal(f) {
		t.Error("it takes one for the other")
	}
}
