package hardcases

import (
	"slices"
	"strings"
	"testing"
)

func TestNamesThatCarryACase(t *testing.T) {
	for test, want := range map[string]string{
		"TestF08TouchIsNoDrift": "F-08", "TestF04F10CallsThatFail": "F-04 F-10", "TestMachineU06WhatBecameOfAJob": "U-06",
		"TestF8": "", "TestFiles": "", "TestX08": "", "TestAF08": "", "TestT03": "T-03", "TestMachineKilled": "",
	} {
		if got := strings.Join(called(test), " "); got != want {
			t.Errorf("%s: %q, want %q", test, got, want)
		}
	}
}

func TestALineThatIsNotTrueIsFound(t *testing.T) {
	source := map[string]map[string][]string{"a": {"TestF08It": {"x"}, "TestIt": {"F-08 at once", "on F-09"}}}
	for _, c := range []struct {
		line line
		says string
	}{
		{line{id: "F-08", dir: "a", test: "TestF08It"}, ""},
		{line{id: "F-08", dir: "a", test: "TestIt", part: "F-08"}, ""},
		{line{id: "F-08", dir: "b", test: "TestF08It"}, "there is no"},
		{line{id: "F-08", dir: "a", test: "TestF08"}, "there is no"},
		{line{id: "F-09", dir: "a", test: "TestF08It"}, "does not say so"},
		{line{id: "F-08", dir: "a", test: "TestIt"}, "does not say so"},
		{line{id: "F-08", dir: "a", test: "TestIt", part: "at once"}, "does not begin so"},
		{line{id: "F-09", dir: "a", test: "TestIt", part: "F-09"}, "has no part"},
	} {
		if got := c.line.untrue(source); got == "" != (c.says == "") || !strings.Contains(got, c.says) {
			t.Errorf("%+v: %q, want %q", c.line, got, c.says)
		}
	}
}

func TestWhatIsSpokenOfIsSeen(t *testing.T) {
	if got, want := spoken.FindAllString("F-08, and X-08, UTF-16, P-256; (H-01)", -1), []string{"F-08", "H-01"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}
