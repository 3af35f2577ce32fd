package pack

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// TestWhatRunsIsWhatWasRead: a program is asked for its manual page as it was read,
// whatever is in its place by then.
func TestWhatRunsIsWhatWasRead(t *testing.T) {
	if Native() == "" {
		t.Skip("there are no releases for this machine")
	}
	good, evil := sources(t, "good"), sources(t, "evil")
	p := &packing{work: t.TempDir()}
	for _, id := range Contents {
		file := compiled(t, good, id, Native())
		program, err := ReadProgram(file)
		if err != nil {
			t.Fatal(err)
		}
		if program.ID != id || program.Version != "1.0.0" || program.Architecture != Native() {
			t.Errorf("it is %+v", program)
		}
		p.Programs = append(p.Programs, program)
		if err := os.Rename(compiled(t, evil, id, Native()), file); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.describe(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, id := range Contents {
		if got := string(p.texts[id].Man); got != "good 1.0.0 [man]\n" {
			t.Errorf("%s says %q", id, got)
		}
	}
}

func TestAPipeIsNoProgram(t *testing.T) {
	pipe := t.TempDir() + "/mesh-host"
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadProgram(pipe); fault.KindOf(err) != fault.Refused || !strings.Contains(err.Error(), "not a regular file") {
		t.Error(err)
	}
}
