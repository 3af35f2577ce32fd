package door

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

func TestAQuestionIsReadStrictly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	serve(t, path, Server{Handler: doubling(func(_ context.Context, q number) (number, error) { return number{q.N * 2}, nil })})
	for body, want := range map[string]string{
		`{"n":4}`: "", ` {"n":4} `: "", `{}`: "",
		``: "EOF", `[]`: "array", `{"n":"4"}`: "string", `{"n":4`: "unexpected EOF",
		`{"n":4,"m":5}`:  `unknown field "m"`,
		`{"n":4}{"n":5}`: "after it", `{"n":4}]`: "invalid character",
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, origin+"/v1/double", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		var a number
		err = (&Client{Path: path}).once(r, &a)
		if want == "" && err != nil || want != "" && (fault.KindOf(err) != fault.Usage || !strings.HasPrefix(err.Error(), "cannot read the question: ") || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, %v", body, a, err)
		}
	}
}

func TestAQuestionIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	serve(t, path, Server{Handler: doubling(func(_ context.Context, q number) (number, error) { return q, nil })})
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, origin+"/v1/double", strings.NewReader(strings.Repeat(" ", 64<<20)+"{}"))
	if err != nil {
		t.Fatal(err)
	}
	err = (&Client{Path: path}).once(r, new(number))
	if fault.KindOf(err) != fault.Usage || err.Error() != "cannot read the question: it is larger than 67108864 bytes" {
		t.Errorf("%v", err)
	}
}

func TestAnAnswerIsBounded(t *testing.T) {
	say := Verb[int, string]{Name: "say", Again: true}
	asked := 0
	m := http.NewServeMux()
	say.Handle(m, func(_ context.Context, n int) (string, error) { asked++; return strings.Repeat("x", n), nil })
	// And one that never ends.
	m.HandleFunc("/v1/for-ever", func(w http.ResponseWriter, _ *http.Request) {
		for {
			if _, err := io.WriteString(w, "          "); err != nil {
				return
			}
		}
	})
	path := filepath.Join(t.TempDir(), "s")
	serve(t, path, Server{Handler: m})
	c := patient(path)
	c.bound = 100_000
	if s, err := say.Ask(t.Context(), c, 99_998); err != nil || len(s) != 99_998 {
		t.Errorf("%d, %v", len(s), err)
	}
	if _, err := say.Ask(t.Context(), c, 99_999); HowOf(err) != Strange || !strings.Contains(err.Error(), "larger than 100000 bytes") || asked != 2 {
		t.Errorf("asked %d times: %v", asked, err)
	}
	if _, err := (Verb[None, string]{Name: "for-ever"}).Ask(t.Context(), c, None{}); HowOf(err) != Strange {
		t.Errorf("%v", err)
	}
}

func TestAFaultTravelsWhole(t *testing.T) {
	var say error
	path := filepath.Join(t.TempDir(), "s")
	serve(t, path, Server{Handler: doubling(func(context.Context, number) (number, error) { return number{7}, say })})
	for _, c := range []struct {
		err    error
		kind   fault.Kind
		remedy string
	}{
		{errors.New("it is broken"), fault.Failed, ""},
		{fault.Refusedf("cannot do %q", "<x>").Hint("do y"), fault.Refused, "do y"},
		{fmt.Errorf("cannot do it: %w", fault.Partialf("a half").Hint("do the rest")), fault.Partial, "do the rest"},
	} {
		say = c.err
		a, err := double.Ask(t.Context(), &Client{Path: path, Tell: func(*Unanswered) error { t.Error("an answer was told"); return nil }}, number{})
		if err == nil || err.Error() != c.err.Error() || fault.KindOf(err) != c.kind || fault.RemedyOf(err) != c.remedy || HowOf(err) != 0 || a.N != 0 {
			t.Errorf("%v: %v (%d), %v", c.err, err, fault.KindOf(err), a)
		}
	}
}

// A verb that a daemon does not know, or answers in another way, is no fault of
// the asker's.
func TestWhatIsNoAnswerIsStrange(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		body   string
	}{
		"no such verb": {http.StatusNotFound, "404 page not found"}, "no JSON": {http.StatusOK, "<html>"}, "another type": {http.StatusOK, `{"n":"x"}`},
		"no fault": {http.StatusUnprocessableEntity, "{}"}, "no kind": {http.StatusUnprocessableEntity, `{"sentence":"x"}`},
		"exit code 0": {http.StatusUnprocessableEntity, `{"kind":0,"sentence":"x"}`}, "no exit code of ours": {http.StatusUnprocessableEntity, `{"kind":77,"sentence":"x"}`},
		"elsewhere": {http.StatusTemporaryRedirect, ""},
	} {
		asked, path := 0, filepath.Join(t.TempDir(), "s")
		stop := serve(t, path, Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			asked++
			w.Header().Set("Location", "/v1/other")
			w.WriteHeader(c.status)
			_, _ = io.WriteString(w, c.body)
		})})
		_, err := again.Ask(t.Context(), patient(path), number{})
		if err := stop(); err != nil {
			t.Error(err)
		}
		if HowOf(err) != Strange || asked != 1 {
			t.Errorf("%s: asked %d times, %v", name, asked, err)
		}
	}
}

func TestAnAnswerMaySayMoreThanIsKnown(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	serve(t, path, Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{"n": 8, "colour": "red"})
	})})
	if a, err := double.Ask(t.Context(), &Client{Path: path}, number{}); err != nil || a.N != 8 {
		t.Errorf("%v, %v", a, err)
	}
}

func TestAnAnswerThatCannotBeWrittenIsAFault(t *testing.T) {
	odd := Verb[None, any]{Name: "odd"}
	m := http.NewServeMux()
	odd.Handle(m, func(context.Context, None) (any, error) { return func() {}, nil })
	path := filepath.Join(t.TempDir(), "s")
	serve(t, path, Server{Handler: m})
	if _, err := odd.Ask(t.Context(), &Client{Path: path}, None{}); fault.KindOf(err) != fault.Failed || !strings.HasPrefix(err.Error(), "cannot write the answer") {
		t.Errorf("%v", err)
	}
}
