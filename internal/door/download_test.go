package door

import (
	"context"
	"errors"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

type wish struct {
	Size  int    `json:"size"`
	Fails string `json:"fails,omitempty"`
}

var download = Download[wish]{Name: "download"}

func TestADownloadComesWholeOrSaysWhyNot(t *testing.T) {
	mux := http.NewServeMux()
	download.Handle(mux, func(_ context.Context, q wish, w io.Writer) error {
		if _, err := io.Copy(w, strings.NewReader(strings.Repeat("x", q.Size))); err != nil {
			return err
		}
		switch q.Fails {
		case "":
			return nil
		case "cut":
			panic(http.ErrAbortHandler)
		}
		return fault.Refusedf("%s", q.Fails).Hint("do it otherwise")
	})
	path := filepath.Join(t.TempDir(), "s")
	serve(t, path, Server{Handler: mux})
	c := &Client{Path: path}
	fetch := func(q wish) (string, error) {
		var out strings.Builder
		err := download.Fetch(t.Context(), c, q, &out)
		return out.String(), err
	}
	for _, size := range []int{0, 1, 5 << 20} {
		if got, err := fetch(wish{Size: size}); err != nil || len(got) != size {
			t.Errorf("%d bytes: %d, %v", size, len(got), err)
		}
		if _, err := fetch(wish{size, "cannot go on"}); fault.KindOf(err) != fault.Refused || err.Error() != "cannot go on" || fault.RemedyOf(err) != "do it otherwise" {
			t.Errorf("a fault after %d bytes: %v; %s", size, err, fault.RemedyOf(err))
		}
		if _, err := fetch(wish{size, "cut"}); HowOf(err) != Cut {
			t.Errorf("cut after %d bytes: %v", size, err)
		}
	}
	full := errors.New("the disk is full")
	if err := download.Fetch(t.Context(), c, wish{Size: 1 << 20}, writeFunc(func([]byte) (int, error) { return 0, full })); err != full {
		t.Errorf("%v", err)
	}
}

type writeFunc func([]byte) (int, error)

func (f writeFunc) Write(b []byte) (int, error) { return f(b) }
