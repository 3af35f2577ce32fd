package cli

import (
	"bytes"
	"testing"
)

func TestForeignTextDrivesNoTerminal(t *testing.T) {
	for text, want := range map[string]string{
		"grün 日本 🙂\n":         "grün 日本 🙂\n",
		"a\tb\n":              "a\tb\n",
		"\x1b[31mred\x1b[0m":  "\uFFFD[31mred\uFFFD[0m",
		"\x1b]0;title\a":      "\uFFFD]0;title\uFFFD",
		"over\rwritten":       "over\uFFFDwritten",
		"C1 \u009b2J":         "C1 \uFFFD2J",
		"bare C1 \x9b2J":      "bare C1 \uFFFD2J",
		"mark \u202e of bidi": "mark \uFFFD of bidi",
		"half \xe6\x97":       "half \uFFFD\uFFFD",
		"":                    "",
	} {
		for _, how := range []string{"whole", "a byte at a time"} {
			var out bytes.Buffer
			f := &Foreign{W: &out}
			if how == "whole" {
				_, _ = f.Write([]byte(text))
			} else {
				for i := range len(text) {
					_, _ = f.Write([]byte{text[i]})
				}
			}
			if err := f.Close(); err != nil || out.String() != want {
				t.Errorf("%s: %q is %q, want %q", how, text, out.String(), want)
			}
		}
	}
}
