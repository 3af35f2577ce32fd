package cli

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"
)

// TestJSONDrivesNoTerminal: a name of a file is foreign, and JSON is looked at.
func TestJSONDrivesNoTerminal(t *testing.T) {
	for name, want := range map[string]string{
		"plain <&> ünïcödé ☃ 😀": `"plain <&> ünïcödé ☃ 😀"`,
		"\u009b31m":             `"\u009b31m"`,
		"\u007f":                `"\u007f"`,
		"\u0080\u009f":          `"\u0080\u009f"`,
		"a\u202egnp.exe":        `"a\u202egnp.exe"`,
		"\u2066\u2069\u200e":    `"\u2066\u2069\u200e"`,
		"\U000e0041":            `"\udb40\udc41"`, // a tag character, which is not seen
		"\xc2":                  `"\ufffd"`,
		"\x1b\n":                `"\u001b\n"`,
	} {
		var b strings.Builder
		if err := JSON(&b, name); err != nil || b.String() != want+"\n" {
			t.Errorf("%q: %s, %v, want %s", name, b.String(), err, want)
		}
		var again string
		if err := json.Unmarshal([]byte(b.String()), &again); err != nil || again != strings.ToValidUTF8(name, "\ufffd") {
			t.Errorf("%q is read as %q, %v", name, again, err)
		}
	}
	// What is JSON already is not encoded again, and may not even be UTF-8.
	var b strings.Builder
	if err := JSON(&b, map[string]any{"\u0085": json.RawMessage("\"\u202e\xff\"")}); err != nil {
		t.Fatal(err)
	}
	if want := "{\n  \"\\u0085\": \"\\u202e\\ufffd\"\n}\n"; b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
	for _, r := range b.String() {
		if r != '\n' && !unicode.IsPrint(r) {
			t.Errorf("%U is in it", r)
		}
	}
}
