package repository

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestWhatWasVerifiedIsServed: what happens to the names afterwards is not.
func TestWhatWasVerifiedIsServed(t *testing.T) {
	s := newSite(t, usual)
	r := s.release("x86_64", 7)
	s.sow(r)
	s.serve()
	s.wants("a seed", "1.0.7 x86_64 seed")
	db := filepath.Join(s.l.ControllerSeed(), "arch/x86_64/nox-mesh.db")
	if err := os.WriteFile(db+"~", []byte("swapped"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(db+"~", db); err != nil {
		t.Fatal(err)
	}
	if code, body := s.get("/arch/x86_64/nox-mesh.db"); code != 200 || body != r.Files["arch/x86_64/nox-mesh.db"] {
		t.Errorf("%d %q", code, body)
	}

	// The next seed takes its place when it is there, whole.
	next := s.release("x86_64", 8)
	half := *next
	half.Files = map[string]string{"release.json": next.Files["release.json"]}
	s.sow(&half)
	s.wants("the list of the next seed", "1.0.7 x86_64 seed")
	half.Files = map[string]string{"release.json.sigstore.json": next.Files["release.json.sigstore.json"], "arch/x86_64/nox-mesh.db": next.Files["arch/x86_64/nox-mesh.db"]}
	s.sow(&half)
	s.wants("a half of the next seed", "1.0.7 x86_64 seed")
	if code, body := s.get("/arch/x86_64/nox-mesh.db"); code != 200 || body != r.Files["arch/x86_64/nox-mesh.db"] {
		t.Errorf("%d %q", code, body)
	}
	s.sow(next)
	s.wants("the next seed", "1.0.8 x86_64 seed")
	if code, body := s.get("/arch/x86_64/nox-mesh.db"); code != 200 || body != next.Files["arch/x86_64/nox-mesh.db"] {
		t.Errorf("%d %q", code, body)
	}
	if err := os.RemoveAll(s.l.ControllerSeed()); err != nil {
		t.Fatal(err)
	}
	s.wants("no seed", "")
}

// TestAReaderSeesOneReleaseOrTheNext: whoever got a database gets the package it
// stands for, or a newer database.
func TestAReaderSeesOneReleaseOrTheNext(t *testing.T) {
	s := newSite(t, usual)
	s.sow(s.release("x86_64", 1))
	s.serve()
	s.wants("a seed", "1.0.1 x86_64 seed")
	const db, last = "arch/x86_64/nox-mesh.db", 12
	fetch := func(name string) (int, string) {
		r, err := http.Get("http://" + s.address + "/" + name)
		if err != nil {
			t.Error(err)
			return 0, ""
		}
		defer r.Body.Close()
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		return r.StatusCode, string(b)
	}
	counter := func() (n uint64) {
		code, body := fetch(db)
		if _, err := fmt.Sscanf(body, db+" of 1.0.%d", &n); code != 200 || err != nil {
			t.Errorf("the database: %d %q", code, body)
			return last
		}
		return n
	}
	ended := make(chan int)
	for range 4 {
		go func() {
			again := 0
			for n := counter(); n < last; n = counter() {
				pkg := fmt.Sprintf("arch/x86_64/nox-mesh-host-1.0.%d-1-x86_64.pkg.tar.zst", n)
				code, body := fetch(pkg)
				switch {
				case code == 200 && body == fmt.Sprintf("%s of 1.0.%d", pkg, n):
				case code == 404 && counter() > n:
					again++
				default:
					t.Errorf("release %d has a database and no package: %d %q", n, code, body)
				}
			}
			ended <- again
		}()
	}
	for n := uint64(2); n <= last; n++ {
		s.sow(s.release("x86_64", n)) // file by file, and looked at in between
		s.Serves()
	}
	again := 0
	for range 4 {
		again += <-ended
	}
	t.Logf("%d times a reader was told to ask again", again)
}

// TestNobodyIsServedWhatIsNotTrusted: not any more when the trust is gone, and again
// when it is put right.
func TestNobodyIsServedWhatIsNotTrusted(t *testing.T) {
	s := newSite(t, usual)
	s.sow(s.release("x86_64", 7))
	s.serve()
	s.wants("a seed", "1.0.7 x86_64 seed")
	if err := os.RemoveAll(s.l.AdminTrust()); err != nil {
		t.Fatal(err)
	}
	s.Changed()
	s.wants("without trust", "")
	if _, faults := s.Serves(); len(faults) != 1 || !strings.Contains(faults[0].Error(), "trusts no release root") {
		t.Errorf("without trust it says %q", faults)
	}
	if code, _ := s.get("/arch/x86_64/nox-mesh.db"); code != 404 {
		t.Errorf("without trust: %d", code)
	}
	if err := s.publisher.TrustedBy(s.l); err != nil {
		t.Fatal(err)
	}
	s.wants("with trust again", "1.0.7 x86_64 seed")
}

// TestNothingStaysOpen when it ends, and when a release was replaced.
func TestNothingStaysOpen(t *testing.T) {
	s := newSite(t, usual)
	before := openBelow(t, s.l.ControllerSeed())
	for counter := range uint64(5) {
		stop := s.serve()
		for n := range uint64(3) {
			s.sow(s.release("x86_64", 10*counter+n+1))
			s.Serves()
			if now := openBelow(t, s.l.ControllerSeed()); len(now) > 7 {
				t.Errorf("%d files are open: %q", len(now), now)
			}
		}
		stop()
	}
	if now := openBelow(t, s.l.ControllerSeed()); !slices.Equal(now, before) {
		t.Errorf("open are %q", now)
	}
}

// openBelow are the files below dir that this process has open.
func openBelow(t *testing.T, dir string) (out []string) {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range fds {
		if to, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && strings.HasPrefix(to, dir) {
			out = append(out, to)
		}
	}
	return out
}
