package cli

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// TestAnAnswerThatIsLostIsAFault, whoever looked at what a write said.
func TestAnAnswerThatIsLostIsAFault(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer full.Close()
	const says = "cannot write the answer: no space left on device"
	for what, c := range map[string]struct {
		end  func(wrote error) error
		kind fault.Kind
		says string
	}{
		"nobody looked":        {func(error) error { return nil }, fault.Failed, says},
		"it was returned":      {func(err error) error { return err }, fault.Failed, says},
		"it was wrapped":       {func(err error) error { return fmt.Errorf("cannot list: %w", err) }, fault.Failed, says},
		"a plan that was lost": {func(error) error { return fault.Todof("2 things to do") }, fault.Failed, says},
		"more went wrong":      {func(error) error { return fault.Refusedf("it does not verify") }, fault.Refused, "it does not verify"},
	} {
		out := &answer{w: full}
		_, wrote := fmt.Fprintln(out, "good")
		err := out.fault(c.end(wrote))
		if fault.KindOf(err) != c.kind || err.Error() != c.says {
			t.Errorf("%s: %v", what, err)
		}
		if c.kind == fault.Failed && !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("%s: no remedy is known for it", what)
		}
	}
	var b strings.Builder
	out := &answer{w: &b}
	fmt.Fprint(out, "good")
	if err := out.fault(nil); err != nil || b.String() != "good" {
		t.Errorf("%q, %v", b.String(), err)
	}
}

// TestATableHasOneLineARow, whatever is in its cells.
func TestATableHasOneLineARow(t *testing.T) {
	var b strings.Builder
	err := Table(&b, []string{"FILE", "IS"}, [][]string{{"a\nb: good\x1b[32m", "b\tad"}, {"c", "good"}})
	const want = "FILE              IS\na | b: good\uFFFD[32m  b ad\nc                 good\n"
	if err != nil || b.String() != want {
		t.Errorf("%q, %v, want %q", b.String(), err, want)
	}
}
