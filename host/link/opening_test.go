package link

import (
	"net/http"
	"reflect"
	"strings"
	"testing"
)

func TestAnOpeningIsReadAsItWasSaid(t *testing.T) {
	const digest = "sha256:2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae"
	for _, o := range []Opening{
		{},
		{Sessions: []SessionValue{"1-0123456789abcdef"}},
		{Sessions: []SessionValue{"12-0123456789abcdef", "11-0000000000000000"}, Have: &Position{Epoch: 2, Generation: 7, Digest: digest}},
	} {
		h := http.Header{}
		o.Set(h)
		if got, err := ParseOpening(h); err != nil || !reflect.DeepEqual(got, o) {
			t.Errorf("%v is read as %+v, %v", h, got, err)
		}
	}
}

func TestWhatIsNoOpeningIsRefused(t *testing.T) {
	const digest = "sha256:2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae"
	for _, x := range [][2]string{
		{HeaderSession, "0-0123456789abcdef"},
		{HeaderSession, "1-0123456789ABCDEF"},
		{HeaderSession, "1-0123456789abcdef,2-0123456789abcdef"},
		{HeaderSession, "1-0123456789abcdef, 2-0123456789abcdef, 3-0123456789abcdef"},
		{HeaderSession, strings.Repeat("9", 40) + "-0123456789abcdef"},
		{HeaderHave, "1 2"},
		{HeaderHave, "1 2 sha256:00"},
		{HeaderHave, "-1 2 " + digest},
		{HeaderHave, "01 2 " + digest},
		{HeaderHave, "1 2 " + digest + " 3"},
	} {
		h := http.Header{}
		h.Set(x[0], x[1])
		if _, err := ParseOpening(h); CodeOf(err) != Refused {
			t.Errorf("%s: %s: %v", x[0], x[1], err)
		}
	}
}

func TestSessionValuesAreCountedAndDistinct(t *testing.T) {
	a, b := NewSessionValue(41), NewSessionValue(41)
	if a == b || !a.Valid() || a.Count() != 41 || SessionValue("").Count() != 0 {
		t.Errorf("%q, %q", a, b)
	}
}
