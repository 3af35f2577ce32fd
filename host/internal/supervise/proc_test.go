package supervise

import (
	"os"
	"strings"
	"testing"
)

func FuzzParseStat(f *testing.F) {
	self, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		f.Skip(err)
	}
	f.Add(self)
	f.Add([]byte("7 (a) b) (c) S 1 7 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4242 0 0"))
	f.Add([]byte("7 (cut) S 1"))
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := parseStat(b)
		if err != nil {
			return
		}
		// Whatever the command is called, the fields behind it are the same.
		fields := b[strings.LastIndex(string(b), ")")+1:]
		other, err := parseStat(append([]byte("1 (a (b) c"), append([]byte(")"), fields...)...))
		if err != nil || other != got {
			t.Errorf("%q gives %+v, and under another name %+v, %v", b, got, other, err)
		}
	})
}

func TestCommandWithParenthesesIsNoTrap(t *testing.T) {
	s, err := parseStat([]byte("7 (a) S 9 (c) R 1 8 6 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4242 0 0"))
	if want := (stat{parent: 1, group: 8, session: 6, start: 4242}); err != nil || s != want {
		t.Errorf("%+v, %v; want %+v", s, err, want)
	}
}
