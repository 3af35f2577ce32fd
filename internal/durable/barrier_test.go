package durable

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
)

// counted stands in for syncfs and counts its calls.
func counted(t *testing.T, err error) *atomic.Int32 {
	t.Helper()
	var n atomic.Int32
	syncfs = func(fd int) error {
		n.Add(1)
		if err != nil {
			return err
		}
		return unix.Syncfs(fd)
	}
	t.Cleanup(func() { syncfs = unix.Syncfs })
	return &n
}

// writeTogether makes n files in dir, all at once.
func writeTogether(dir string, n int, absent int) []error {
	b := NewBarrier(n + absent)
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			defer b.Leave()
			errs[i] = func() error {
				d, err := OpenDir(dir)
				if err != nil {
					return err
				}
				defer d.Close()
				d.Share(b)
				p, err := d.Create(fmt.Sprint(i), Perm(0o640))
				if err != nil {
					return err
				}
				defer p.Abort()
				if _, err := fmt.Fprintf(p, "content %d", i); err != nil {
					return err
				}
				return p.Commit()
			}()
		})
	}
	all.Wait()
	return errs
}

func wantFiles(t *testing.T, dir string, n int) {
	t.Helper()
	es, err := os.ReadDir(dir)
	if err != nil || len(es) != n {
		t.Fatalf("%d names, %v; want %d", len(es), err, n)
	}
	for i := range n {
		if got, err := os.ReadFile(filepath.Join(dir, fmt.Sprint(i))); string(got) != fmt.Sprintf("content %d", i) {
			t.Errorf("file %d holds %q, %v", i, got, err)
		}
	}
}

func onDisk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	d, err := OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if !atOnce(d.FD()) {
		t.Skip("syncfs is not relied on here")
	}
	return dir
}

func TestManyFilesShareOneSync(t *testing.T) {
	dir, n := onDisk(t), counted(t, nil)
	if err := errors.Join(writeTogether(dir, 200, 0)...); err != nil {
		t.Fatal(err)
	}
	wantFiles(t, dir, 200)
	if n.Load() != 1 {
		t.Errorf("%d calls of syncfs for 200 files", n.Load())
	}
}

func TestFewFilesAreSyncedAlone(t *testing.T) {
	dir, n := t.TempDir(), counted(t, nil)
	if err := errors.Join(writeTogether(dir, fewFiles-1, 0)...); err != nil {
		t.Fatal(err)
	}
	wantFiles(t, dir, fewFiles-1)
	if n.Load() != 0 {
		t.Error("other people's data was waited for")
	}
}

func TestF10WhenTheSyncFailsEachFileIsToldItsOwn(t *testing.T) {
	dir, n := onDisk(t), counted(t, unix.EIO)
	if err := errors.Join(writeTogether(dir, 100, 0)...); err != nil {
		t.Fatal(err) // fsync of each found nothing wrong
	}
	wantFiles(t, dir, 100)
	if n.Load() != 1 {
		t.Errorf("%d calls of syncfs", n.Load())
	}
}

func TestOneThatFailsHoldsNobodyAndFailsAlone(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "7"), 0o755); err != nil {
		t.Fatal(err)
	}
	for i, err := range writeTogether(dir, 50, 0) {
		if (err != nil) != (i == 7) {
			t.Errorf("file %d: %v", i, err)
		}
	}
	es, _ := os.ReadDir(dir)
	for _, e := range es {
		if strings.HasPrefix(e.Name(), ".") {
			t.Errorf("%s is left", e.Name())
		}
	}
}

func TestOneThatNeverComesIsNotWaitedForLong(t *testing.T) {
	dir := t.TempDir()
	if err := errors.Join(writeTogether(dir, 3, 1)...); err != nil { // the fourth hangs
		t.Fatal(err)
	}
	wantFiles(t, dir, 3)
}

func TestTheBarrierWaitsForThoseThatCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, err := OpenDir("/")
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		b := NewBarrier(2)
		d.Share(b)
		start, first := time.Now(), make(chan time.Duration, 1)
		go func() { _ = d.Sync(); first <- time.Since(start); b.Leave() }()
		time.Sleep(patience / 2)
		b.Leave() // the other one had nothing to write
		if took := <-first; took != patience/2 {
			t.Errorf("the first went on after %v", took)
		}
	})
}

func TestKernelsThatTellOfErrors(t *testing.T) {
	for release, want := range map[string]bool{
		"6.1.0-28-amd64": true, "5.8.0": true, "5.10.0-33": true, "5.7.19": false, "4.19.0-27-amd64": false, "10.0": true, "": false, "odd": false,
	} {
		if since58(release) != want {
			t.Errorf("%q: %v", release, !want)
		}
	}
}
