package service

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/host/internal/launcher"
	"github.com/nox-mesh/nox-mesh/host/internal/slots"
)

// failedHere makes a machine on which the launcher gave up a version.
func failedHere(t *testing.T, version string) *Service {
	t.Helper()
	cfg := machine(t)
	dir := cfg.Layout.LauncherDir()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	state := launcher.State{Failed: &launcher.Failed{
		Digest: digest.FromString("bad").String(), Version: version, Starts: 5, Why: "it did not prove itself",
		At: time.Date(2001, 9, 9, 1, 46, 40, 0, time.UTC), Ends: []string{"exit-code/exited/2"}, Back: true,
	}}
	if err := slots.Write(filepath.Join(dir, launcher.StateFile), &state); err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestWhatFailedHereIsHeldBackAsTheHostAndAsNothingElse(t *testing.T) {
	s := failedHere(t, "0.0.2")
	const why = "version 0.0.2 failed here 5 times (it did not prove itself; in the end it exited with 2), and is held back until another is declared; version 0.0.0-dev runs"
	bad, other := digest.FromString("bad"), digest.FromString("other")
	for _, c := range []struct {
		path string
		sum  digest.Digest
		want string
	}{
		{"/usr/local/bin/mesh-host", bad, why},
		{"/usr/bin/mesh-host", bad, why},
		{"/usr/local/bin/mesh-host", other, ""},
		{"/srv/mirror/mesh-host", bad, ""},
	} {
		if got := s.failedFile(c.path, c.sum); got != c.want {
			t.Errorf("%s with %s: %q", c.path, c.sum, got)
		}
	}
	if s.refused() != bad {
		t.Errorf("refused is %q", s.refused())
	}
}

func TestThePackageThatFailedIsKnownByItsSourceOrElseByItsVersion(t *testing.T) {
	s := failedHere(t, "")
	source, other := digest.FromString("the package"), digest.FromString("another")
	if got := s.failedPackage("0.0.2-1", source); got != "" {
		t.Errorf("held, and no package is known: %q", got)
	}
	n := noted{Digest: digest.FromString("bad").String(), At: time.Date(2001, 9, 9, 1, 46, 40, 0, time.UTC), Version: "0.0.2",
		Packages: []FailedPackage{{"0.0.2-1", source}, {Version: "0.0.2-2"}}}
	if err := writePaper(s.notedFile(), n); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		version string
		source  digest.Digest
		held    bool
	}{
		{"0.0.2-1", source, true},
		{"0.0.2-1", other, false}, // the same version, built anew
		{"0.0.2-1", "", true},
		{"0.0.3-1", "", false},
		{"0.0.2-2", other, true}, // the same binary, packed anew
		{"", source, true},
	} {
		if got := s.failedPackage(c.version, c.source); (got != "") != c.held || c.held && !strings.HasPrefix(got, "version 0.0.2 failed here 5 times") {
			t.Errorf("%q from %q: %q", c.version, c.source, got)
		}
	}
	// What was noted of another failure says nothing of this one.
	for _, b := range []string{"garbage", `{"digest":"sha256:x","packages":[{"version":"0.0.2-1"}]}`, ""} {
		if err := os.WriteFile(s.notedFile(), []byte(b), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := s.failedPackage("0.0.2-1", ""); got != "" {
			t.Errorf("%q: %q", b, got)
		}
	}
}

func TestStatusSaysWhatFailedAndItsLastWord(t *testing.T) {
	s := failedHere(t, "")
	n := noted{Digest: digest.FromString("bad").String(), At: time.Date(2001, 9, 9, 1, 46, 40, 0, time.UTC),
		Words: []string{"starts", "panic: no more", "", "goroutine 1 [running]:", "\tmain.go:7"}}
	if err := writePaper(s.notedFile(), n); err != nil {
		t.Fatal(err)
	}
	st, err := s.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if st.Failed == nil || len(st.Warnings) == 0 || !strings.Contains(st.Warnings[0], `) failed here 5 times`) || !strings.Contains(st.Warnings[0], `"panic: no more"`) {
		t.Errorf("%+v, %q", st.Failed, st.Warnings)
	}
}
