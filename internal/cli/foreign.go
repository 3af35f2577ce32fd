package cli

import (
	"io"
	"unicode/utf8"
)

// A Foreign writes what somebody else says to W, as Lines has it: what cannot be
// printed is taken out of it. It holds no more than a character that is not all there
// yet; Close writes what is left of one.
type Foreign struct {
	W    io.Writer
	rest []byte
}

func (f *Foreign) Write(p []byte) (int, error) {
	text := append(f.rest, p...)
	whole := len(text) - unfinished(text)
	if _, err := io.WriteString(f.W, Lines(string(text[:whole]))); err != nil {
		return 0, err
	}
	f.rest = append([]byte(nil), text[whole:]...)
	return len(p), nil
}

// Close ends the text; W stays open.
func (f *Foreign) Close() error {
	if len(f.rest) == 0 {
		return nil
	}
	_, err := io.WriteString(f.W, Lines(string(f.rest)))
	f.rest = nil
	return err
}

// unfinished is how many bytes at the end of b begin a character.
func unfinished(b []byte) int {
	for n := 1; n <= min(len(b), utf8.UTFMax-1); n++ {
		last := b[len(b)-n:]
		if utf8.RuneStart(last[0]) {
			if utf8.FullRune(last) {
				return 0
			}
			return n
		}
	}
	return 0
}
