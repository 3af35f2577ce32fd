package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// JSON prints v, indented, with a final newline. What cannot be printed is written
// as \uXXXX (EscapeJSON).
func JSON(w io.Writer, v any) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err
	}
	_, err := w.Write(EscapeJSON(b.Bytes()))
	return err
}

// EscapeJSON writes what cannot be printed in a JSON text as \uXXXX: it has the same
// value, and cannot drive the terminal of who looks at it. encoding/json leaves DEL,
// the C1 control characters and the marks of direction as they are, which RFC 8259
// allows. Outside of strings there is nothing but ASCII; what is below a blank there
// is layout, and in strings it is escaped already.
func EscapeJSON(text []byte) []byte {
	foreign := func(r rune) bool { return r >= 0x7f && !unicode.IsPrint(r) }
	if utf8.Valid(text) && bytes.IndexFunc(text, foreign) < 0 {
		return text
	}
	var out []byte
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		switch {
		case r == utf8.RuneError && size == 1:
			out = append(out, `\ufffd`...) // what encoding/json reads it as
		case r > 0xffff && foreign(r):
			high, low := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		case foreign(r):
			out = fmt.Appendf(out, `\u%04x`, r)
		default:
			out = append(out, text[:size]...)
		}
		text = text[size:]
	}
	return out
}
