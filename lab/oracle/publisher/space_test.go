//go:build machine

package publisher

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
)

// full mounts a disk of so many KiB at "disk", in a mount namespace of its own,
// runs mesh-release and brings out what is on the disk afterwards, as "saved".
func (d *desk) full(kib int, env string, args ...string) result {
	d.t.Helper()
	must(d.t, os.MkdirAll(d.path("disk"), 0o755))
	must(d.t, os.RemoveAll(d.path("saved")))
	script := fmt.Sprintf("mount -t tmpfs -o size=%dk,mode=755 tmpfs disk || exit 99\n%s \"$@\"\ncode=$?\ncp -a disk saved || exit 98\nexit $code", kib, env)
	return d.command(context.Background(), "unshare", append([]string{"-m", "sh", "-c", script, "-", shared.program}, args...)...)
}

// needsDisk skips the test where no disk can be mounted.
func needsDisk(t *testing.T) {
	t.Helper()
	needs(t, "unshare", "mount")
	if os.Geteuid() != 0 {
		t.Skip("needs root: it mounts a small disk")
	}
}

// TestAFullDisk packs into disks of every size up to the one that is enough, so
// that the end comes in each phase; at the last, page by page.
func TestAFullDisk(t *testing.T) {
	needsDisk(t)
	d := newDesk(t)
	args := d.packing("disk/o")
	// What is enough; between the two the error is about the last files.
	low, enough := 4, 1<<15
	if r := d.full(enough, "", args...); r.code != 0 || d.holds("enough", "saved/o") != two {
		t.Fatalf("a disk of %d KiB is not enough: %s", enough, r.err)
	}
	phases := map[string]bool{}
	try := func(kib int) bool {
		what := fmt.Sprintf("a disk of %d KiB", kib)
		r := d.full(kib, "", args...)
		if r.code == 0 {
			if got := d.holds(what, "saved/o"); got != two {
				t.Errorf("%s: exit 0, it holds %q", what, got)
			}
			return true
		}
		d.fault(what, r, 1, "no space left on device")
		if got := d.holds(what, "saved/o"); got != "" {
			t.Errorf("%s: it holds %q", what, got)
		}
		d.tidy(what, d.path("saved"))
		for _, phase := range []string{"tar.gz", "pkg.tar.zst", "nox-mesh.files", "nox-mesh.db", "bundle.tar", "provenance", "SHA256SUMS", "release.json", "cdx"} {
			if strings.Contains(r.err, phase) {
				phases[phase] = true
			}
		}
		return false
	}
	for low+4 < enough {
		middle := (low + enough) / 8 * 4
		if middle <= low {
			break
		}
		if try(middle) {
			enough = middle
		} else {
			low = middle
		}
	}
	t.Logf("%d KiB is enough", enough)
	for kib := 4; kib < enough; kib += max(4, (enough-kib)/12/4*4) {
		try(kib)
	}
	t.Logf("phases: %v", phases)
	for _, phase := range []string{"tar.gz", "pkg.tar.zst", "bundle.tar"} {
		if !phases[phase] {
			t.Errorf("no disk was full at %q", phase)
		}
	}
}

// TestAFullDiskWithAnOlderRelease: there is room for one release, and not for two.
func TestAFullDiskWithAnOlderRelease(t *testing.T) {
	needsDisk(t)
	d := newDesk(t)
	args := d.packing("disk/o")
	d.release("old", one)
	for _, more := range []int{64, 1024, 3000} {
		size := more
		for _, text := range shared.clean[one] {
			size += len(text)/1024 + 4
		}
		r := d.full(size, "cp -a old disk/o || exit 97\n", args...)
		d.fault("room for one", r, 1, "no space left on device")
		if got := d.holds("room for one", "saved/o"); got != one {
			t.Errorf("it holds %q", got)
		}
		d.tidy("room for one", d.path("saved"))
	}
}

// TestNoRoomForTemporaryFiles: TMPDIR is full, while --out has room.
func TestNoRoomForTemporaryFiles(t *testing.T) {
	needsDisk(t)
	d := newDesk(t)
	pack := d.packing("o")
	for what, args := range map[string][]string{"build": build("o", two), "pack": pack} {
		for _, kib := range []int{4, 64, 1024} {
			r := d.full(kib, "TMPDIR=$PWD/disk", args...)
			d.fault(fmt.Sprintf("%s, TMPDIR of %d KiB", what, kib), r, 1, "no space left on device")
			if d.holds(what, "o") != "" {
				t.Errorf("%s: something was made", what)
			}
			d.tidy(what, d.dir)
			d.tidy(what, d.path("saved"))
		}
	}
}

// TestReadOnly: a file system, and a directory, in which nothing can be made.
func TestReadOnly(t *testing.T) {
	needsDisk(t)
	d := newDesk(t)
	args := d.packing("disk/o")
	r := d.full(1<<15, "mkdir disk/o && mount -o remount,ro disk || exit 97\n", args...)
	d.fault("a read-only file system", r, 1, "read-only file system")
	r = d.full(1<<15, "mkdir disk/o && mount -o remount,ro disk || exit 97\n", "repo", "add", "--keys", "keys", "disk/o", "once/arch/x86_64/nox-mesh-host-1.0.0-1-x86_64.pkg.tar.zst")
	d.fault("a repository there", r, 1, "read-only file system")
	r = d.full(1<<15, "mount -o remount,ro disk || exit 97\n", "keys", "init", "disk/keys")
	d.fault("keys there", r, 1, "read-only file system")
}

// TestAMountPointIsNoPlaceForARelease: it cannot be exchanged, and that is said.
func TestAMountPointIsNoPlaceForARelease(t *testing.T) {
	needsDisk(t)
	d := newDesk(t)
	r := d.full(1<<15, "", d.packing("disk")...)
	d.fault("a mount point", r, 1, "it is a mount point; use a directory below it")
	if len(d.tree("saved")) > 0 {
		t.Error("something was made")
	}
	d.tidy("a mount point", d.dir)
}

// TestNoSpaceSaysWhatToDo: a full disk has a remedy.
func TestNoSpaceSaysWhatToDo(t *testing.T) {
	needsDisk(t)
	d := newDesk(t)
	d.fault("a full disk", d.full(64, "", d.packing("disk/o")...), 1, "; make room")
}
