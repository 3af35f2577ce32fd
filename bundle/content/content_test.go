package content

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/iotest"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

var ctx = context.Background()

func open(t testing.TB, dir string) *Store {
	t.Helper()
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// tree lists what is under dir, with inode, size, mode and times: two equal
// lists mean that nothing was written.
func tree(t testing.TB, dir string) string {
	t.Helper()
	var out strings.Builder
	err := filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fi, err := e.Info()
		if err != nil {
			return err
		}
		st := fi.Sys().(*syscall.Stat_t)
		fmt.Fprintln(&out, p, st.Ino, fi.Size(), fi.Mode(), fi.ModTime().UnixNano(), st.Ctim.Nano())
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func put(t testing.TB, s *Store, content string) digest.Digest {
	t.Helper()
	d := digest.FromString(content)
	if err := s.Put(ctx, d, int64(len(content)), strings.NewReader(content)); err != nil {
		t.Fatal(err)
	}
	return d
}

func staged(t testing.TB, s *Store) int {
	t.Helper()
	es, err := os.ReadDir(filepath.Join(s.Dir(), stagingDir))
	if err != nil {
		t.Fatal(err)
	}
	return len(es)
}

func TestTheStoreIsAnImageLayoutOfItsOwnUserOnly(t *testing.T) {
	for _, umask := range []int{0, 0o077} {
		old := syscall.Umask(umask)
		s := open(t, filepath.Join(t.TempDir(), "a/content"))
		put(t, s, "x")
		syscall.Umask(old)
		b, err := os.ReadFile(filepath.Join(s.Dir(), "oci-layout"))
		if err != nil || string(b) != `{"imageLayoutVersion":"1.0.0"}` {
			t.Errorf("%s %v", b, err)
		}
		err = filepath.WalkDir(s.Dir(), func(p string, e fs.DirEntry, err error) error {
			fi, _ := e.Info()
			if want := map[bool]fs.FileMode{true: 0o700, false: 0o600}[e.IsDir()]; fi.Mode().Perm() != want {
				t.Errorf("%s is %v", p, fi.Mode())
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}

func TestPutOfABlobThatIsThereWritesNothing(t *testing.T) {
	s := open(t, t.TempDir())
	d := put(t, s, "content")
	before := tree(t, s.Dir())
	if err := s.Put(ctx, d, 7, iotest.ErrReader(errors.New("read"))); err != nil {
		t.Error(err)
	}
	open(t, s.Dir())
	if after := tree(t, s.Dir()); after != before {
		t.Errorf("before\n%safter\n%s", before, after)
	}
	if b, err := s.Read(d, 7); err != nil || string(b) != "content" {
		t.Errorf("%q %v", b, err)
	}
	f, err := s.Open(d)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if b, _ := io.ReadAll(f); string(b) != "content" {
		t.Errorf("%q", b)
	}
}

func TestAPutThatFailsLeavesNothing(t *testing.T) {
	s := open(t, t.TempDir())
	d := digest.FromString("content")
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	disk := errors.New("i/o error")
	for _, c := range []struct {
		name string
		ctx  context.Context
		d    digest.Digest
		size int64
		r    io.Reader
		kind fault.Kind
	}{
		{"other content", ctx, d, 7, strings.NewReader("Content"), fault.Refused},
		{"short", ctx, d, 7, strings.NewReader("conten"), fault.Refused},
		{"longer than announced", ctx, d, 6, strings.NewReader("content"), fault.Refused},
		{"negative size", ctx, d, -1, strings.NewReader("content"), fault.Refused},
		{"bad digest", ctx, "sha256:../../../etc/passwd", 7, strings.NewReader("content"), fault.Refused},
		{"read error", ctx, d, 7, io.MultiReader(strings.NewReader("con"), iotest.ErrReader(disk)), fault.Failed},
		{"cancelled", cancelled, d, 7, strings.NewReader("content"), fault.Failed},
		{"no space", ctx, d, 1 << 62, strings.NewReader("content"), fault.Failed},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := s.Put(c.ctx, c.d, c.size, c.r)
			if err == nil || fault.KindOf(err) != c.kind {
				t.Errorf("%v (kind %d)", err, fault.KindOf(err))
			}
			if s.Has(d, -1) || staged(t, s) != 0 {
				t.Error("something is left")
			}
		})
	}
	if _, err := s.Open(d); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

func TestPutTakesNoMoreThanSize(t *testing.T) {
	s := open(t, t.TempDir())
	r := strings.NewReader("content and more")
	if err := s.Put(ctx, digest.FromString("content"), 7, iotest.OneByteReader(r)); err != nil {
		t.Fatal(err)
	}
	if rest, _ := io.ReadAll(r); string(rest) != " and more" {
		t.Errorf("%q is left", rest)
	}
}

func TestAdd(t *testing.T) {
	s := open(t, t.TempDir())
	d, n, err := s.Add(ctx, strings.NewReader("content"), 7)
	if err != nil || d != digest.FromString("content") || n != 7 || !s.Has(d, 7) || staged(t, s) != 0 {
		t.Errorf("%s %d %v", d, n, err)
	}
	if _, _, err := s.Add(ctx, strings.NewReader("content!"), 7); fault.KindOf(err) != fault.Refused {
		t.Error(err)
	}
	before := tree(t, filepath.Join(s.Dir(), "blobs"))
	if _, _, err := s.Add(ctx, strings.NewReader("content"), 7); err != nil || tree(t, filepath.Join(s.Dir(), "blobs")) != before || staged(t, s) != 0 {
		t.Errorf("written again (%v)", err)
	}
}

func TestReadThrowsAwayABlobThatIsNotWhatItsNameSays(t *testing.T) {
	s := open(t, t.TempDir())
	d := put(t, s, "content")
	if _, err := s.Read(d, 6); fault.KindOf(err) != fault.Refused {
		t.Errorf("over the limit: %v", err)
	}
	if err := os.WriteFile(s.blob(d), []byte("Content"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Read(d, 100); fault.KindOf(err) != fault.Refused || !strings.Contains(err.Error(), "mismatch") {
		t.Error(err)
	}
	if s.Has(d, -1) {
		t.Error("it is still there")
	}
	put(t, s, "content")
	if b, err := s.Read(d, 100); err != nil || string(b) != "content" {
		t.Errorf("%q %v", b, err)
	}
}

func TestASymlinkIsNoBlob(t *testing.T) {
	s := open(t, t.TempDir())
	d := digest.FromString("content")
	if err := os.Symlink("/etc/passwd", s.blob(d)); err != nil {
		t.Fatal(err)
	}
	if s.Has(d, -1) {
		t.Error("it is there")
	}
	if f, err := s.Open(d); err == nil {
		f.Close()
		t.Error("it opens")
	}
	put(t, s, "content")
	if fi, err := os.Lstat(s.blob(d)); err != nil || !fi.Mode().IsRegular() {
		t.Errorf("%v %v", fi, err)
	}
}

func TestOpenSweepsDeadPartsAndLeavesLiveOnes(t *testing.T) {
	s := open(t, t.TempDir())
	dead := filepath.Join(s.Dir(), stagingDir, ".dead.1.1.part")
	foreign := filepath.Join(s.Dir(), stagingDir, "mine")
	for _, p := range []string{dead, foreign} {
		if err := os.WriteFile(p, []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r, w := io.Pipe()
	d := digest.FromString("content")
	done := make(chan error, 1)
	go func() { done <- s.Put(ctx, d, 7, r) }()
	if _, err := w.Write([]byte("con")); err != nil { // it is being written now
		t.Fatal(err)
	}
	open(t, s.Dir())
	if _, err := os.Stat(dead); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the dead part: %v", err)
	}
	if n := staged(t, s); n != 2 {
		t.Errorf("%d files in staging, want the live part and the stranger", n)
	}
	if _, err := w.Write([]byte("tent")); err != nil {
		t.Fatal(err)
	}
	w.Close()
	if err := <-done; err != nil || !s.Has(d, 7) {
		t.Error(err)
	}
}

func TestManyWritersAtOnce(t *testing.T) {
	dir := t.TempDir()
	var wg sync.WaitGroup
	errs := make(chan error, 64)
	content := bytes.Repeat([]byte("0123456789"), 30_000)
	d := digest.FromBytes(content)
	for i := range 8 {
		wg.Go(func() {
			s, err := Open(dir)
			if err != nil {
				errs <- err
				return
			}
			if err := s.Put(ctx, d, int64(len(content)), bytes.NewReader(content)); err != nil {
				errs <- err
			}
			own := fmt.Sprint("own", i)
			if err := s.Put(ctx, digest.FromString(own), int64(len(own)), strings.NewReader(own)); err != nil {
				errs <- err
			}
			if err := s.Mark(v1.Descriptor{MediaType: "x/y", Digest: digest.FromString(own), Size: int64(len(own))}, own); err != nil {
				errs <- err
			}
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		t.Error(err)
	}
	s := open(t, dir)
	for i := range 8 {
		if _, ok, err := s.Marked(digest.FromString(fmt.Sprint("own", i))); !ok || err != nil {
			t.Errorf("mark %d is lost (%v)", i, err)
		}
	}
	if b, err := s.Read(d, 1<<20); err != nil || !bytes.Equal(b, content) {
		t.Error(err)
	}
	if n := staged(t, s); n != 0 {
		t.Errorf("%d files in staging", n)
	}
}

func TestMarks(t *testing.T) {
	s := open(t, t.TempDir())
	desc := func(content string) v1.Descriptor {
		return v1.Descriptor{MediaType: "x/y", Digest: put(t, s, content), Size: int64(len(content))}
	}
	one, two, sig := desc("one"), desc("two"), desc("sig")
	if _, ok, err := s.Marked(one.Digest); ok || err != nil {
		t.Errorf("marked before it was: %v", err)
	}
	gone := v1.Descriptor{MediaType: "x/y", Digest: digest.FromString("gone"), Size: 4}
	if err := s.Mark(one, "v1", gone); err == nil {
		t.Error("marked complete without a blob")
	}
	if err := s.Mark(one, "v1", sig); err != nil {
		t.Fatal(err)
	}
	with, ok, err := s.Marked(one.Digest)
	if !ok || err != nil || len(with) != 1 || with[0].Digest != sig.Digest || with[0].Size != 3 {
		t.Errorf("%v %v %v", with, ok, err)
	}
	if _, ok, _ := s.Marked(sig.Digest); ok {
		t.Error("what lies beside is marked itself")
	}
	before := tree(t, s.Dir())
	if err := s.Mark(one, "v1", sig); err != nil || tree(t, s.Dir()) != before {
		t.Errorf("the same mark was written again (%v)", err)
	}
	if err := s.Mark(two, "v1", sig); err != nil {
		t.Fatal(err)
	}
	for _, d := range []v1.Descriptor{one, two} {
		if with, ok, err := s.Marked(d.Digest); !ok || err != nil || len(with) != 1 {
			t.Errorf("%v %v %v", with, ok, err)
		}
	}
	b, err := os.ReadFile(filepath.Join(s.Dir(), "index.json"))
	if err != nil || bytes.Count(b, []byte(`"v1"`)) != 1 {
		t.Errorf("the name is there %d times: %s", bytes.Count(b, []byte(`"v1"`)), b)
	}
	if n, err := s.Free(); n <= 0 || err != nil {
		t.Errorf("free %d %v", n, err)
	}
}

func TestAForeignDirectoryIsNotTakenOver(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "oci-layout"), []byte(`{"imageLayoutVersion":"2.0.0"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir); fault.KindOf(err) != fault.Refused {
		t.Error(err)
	}
}
