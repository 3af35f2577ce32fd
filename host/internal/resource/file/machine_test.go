package file

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nox-mesh/nox-mesh/internal/layout"
)

const (
	rootVariable = "NOX_FILE_TEST_ROOT"
	specVariable = "NOX_FILE_TEST_SPEC"
)

// childBench is the bench of the parent, in a child.
func childBench(t *testing.T) *bench {
	runtime.LockOSThread() // strace counts the calls of each thread by itself
	root := os.Getenv(rootVariable)
	return benchAt(t, filepath.Join(root, "root"), filepath.Join(root, "content"))
}

func TestF01ImmutableFileFailsSaysSoAndConverges(t *testing.T) {
	needRoot(t)
	for _, what := range []string{"/etc/it", "/etc"} {
		b := newBench(t)
		b.write("/etc/it", "old", 0o644)
		if out, err := exec.Command("chattr", "+i", b.path(what)).CombinedOutput(); err != nil {
			t.Skipf("chattr: %v %s", err, out)
		}
		free := func() { _ = exec.Command("chattr", "-i", b.path(what)).Run() }
		t.Cleanup(free)
		w := want(t, `{"path":"/etc/it","content":"new"}`)
		b.fails(w, `cannot write "/etc/it"`, "immutable (chattr -i)")
		b.text("/etc/it", "old")
		b.holds("/etc", "it")
		free()
		rec := b.apply(w, nil)

		b.must(exec.Command("chattr", "+i", b.path(what)).Run())
		_, _, err := b.kind.Remove(ctx, rec)
		saysAll(t, err, `cannot remove "/etc/it"`, "immutable (chattr -i)")
		free()
		b.remove(rec, "removed", "")
		b.text("/etc/it", "old")
	}
}

func TestF04MountsAreNamedAndNeverWrittenThrough(t *testing.T) {
	if !inMountNamespace(t) {
		return
	}
	b := newBench(t)
	b.write("/etc/source", "theirs", 0o644)
	b.write("/etc/it", "", 0o644)
	b.must(unix.Mount(b.path("/etc/source"), b.path("/etc/it"), "", unix.MS_BIND, ""))
	b.fails(want(t, `{"path":"/etc/it","content":"new"}`), "something is mounted on it")
	b.must(unix.Unmount(b.path("/etc/it"), 0))
	b.text("/etc/source", "theirs")
	b.text("/etc/it", "")

	b.must(unix.Mount("tmpfs", b.path("/etc"), "tmpfs", unix.MS_RDONLY, ""))
	b.fails(want(t, `{"path":"/etc/it","content":"new"}`), "the file system is read-only")
	b.must(unix.Unmount(b.path("/etc"), 0))
	b.holds("/etc", "it source")
}

// A file of the lower layer is replaced in the upper one, and never written.
func TestF04AnOverlayIsWrittenAbove(t *testing.T) {
	if !inMountNamespace(t) {
		return
	}
	b := newBench(t)
	b.mkdir("/layers", 0o755)
	b.must(unix.Mount("tmpfs", b.path("/layers"), "tmpfs", 0, "")) // an overlay takes no other as its upper layer
	defer func() { b.must(unix.Unmount(b.path("/layers"), 0)) }()
	for _, dir := range []string{"/layers/lower", "/layers/upper", "/layers/work"} {
		b.mkdir(dir, 0o755)
	}
	b.write("/layers/lower/it", "theirs", 0o600)
	options := fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s", b.path("/layers/lower"), b.path("/layers/upper"), b.path("/layers/work"))
	err := unix.Mount("overlay", b.path("/etc"), "overlay", 0, options)
	if err == unix.ENODEV || err == unix.EPERM {
		t.Skipf("no overlay can be mounted here: %v", err)
	}
	b.must(err)
	defer func() { b.must(unix.Unmount(b.path("/etc"), 0)) }()
	rec := b.apply(want(t, `{"path":"/etc/it","mode":"0640","content":"new"}`), nil)
	b.text("/etc/it", "new")
	b.text("/layers/lower/it", "theirs")
	b.mode("/layers/lower/it", 0o600)
	b.remove(rec, "removed", "")
	b.text("/etc/it", "theirs")
	b.mode("/etc/it", 0o600)
}

func TestF10FullDiskLeavesTheOldFile(t *testing.T) {
	if !inMountNamespace(t) {
		return
	}
	b := newBench(t)
	b.must(unix.Mount("tmpfs", b.path("/etc"), "tmpfs", 0, "size=64k,mode=755"))
	defer func() { b.must(unix.Unmount(b.path("/etc"), 0)) }()
	b.write("/etc/it", "old", 0o644)
	b.fails(want(t, `{"path":"/etc/it","content":"`+strings.Repeat("x", 1<<20)+`"}`), "no space")
	b.text("/etc/it", "old")
	b.fails(want(t, `{"path":"/etc/a/b/it","content":"`+strings.Repeat("x", 1<<20)+`"}`), "no space")
	b.holds("/etc", "it")
}

// F-04 (a file system without owners and modes: EPERM), F-10.
func TestF04F10CallsThatFailAreNamedAndLeaveTheOldFile(t *testing.T) {
	if inChild() {
		b := childBench(t)
		_, err := b.try(want(t, os.Getenv(specVariable)), nil)
		fmt.Println("ERROR:", err)
		return
	}
	for _, c := range []struct{ call, errno, says string }{
		{"write", "EDQUOT", "the disk quota is used up"},
		{"write", "EIO", "write: input/output error"},
		{"write", "ENOSPC", "no space"},
		{"fsync", "EIO", "sync: input/output error"},
		{"fsync", "ENOSPC", "no space"},
		{"fsync", "EDQUOT", "the disk quota is used up"},
		{"fchmod", "EPERM", "chmod: operation not permitted: the file system may keep no owner or mode"},
		{"fchown", "EPERM", "chown: operation not permitted: the file system may keep no owner or mode"},
		{"renameat", "EROFS", "the file system is read-only"},
		{"renameat", "EXDEV", "rename: invalid cross-device link"},
	} {
		t.Run(c.call+" "+c.errno, func(t *testing.T) {
			if c.call == "fchown" {
				needRoot(t)
			}
			dir := t.TempDir()
			b := benchAt(t, filepath.Join(dir, "root"), filepath.Join(dir, "content"))
			b.write("/etc/it", "old", 0o644)
			only := b.temp("/etc/it")
			if c.call == "renameat" {
				only = b.path("/etc") // the names are relative to it
			}
			cmd := again(t, strace(t, c.call, "error="+c.errno, 1, only)...)
			for i, a := range cmd.Args {
				cmd.Args[i] = strings.Replace(a, t.Name(), "TestF04F10CallsThatFailAreNamedAndLeaveTheOldFile", 1)
			}
			cmd.Env = append(cmd.Env, rootVariable+"="+dir, specVariable+`={"path":"/etc/it","content":"new"}`)
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(out), "ERROR: cannot write \"/etc/it\": ") || !strings.Contains(string(out), c.says) {
				t.Errorf("%v, it says\n%s\nwant %q", err, out, c.says)
			}
			b.text("/etc/it", "old")
			b.holds("/etc", "it")
		})
	}
}

func TestH06CheckOfWhatIsAsDeclaredNeitherWritesNorSyncsNorStartsAnything(t *testing.T) {
	w := want(t, `{"path":"/etc/it","content":"x"}`)
	if inChild() {
		k := New(Config{Layout: layout.Layout{Root: os.Getenv(rootVariable)}})
		if st, err := k.Check(ctx, w, nil); err != nil || !st.Same {
			t.Fatalf("Check says %+v, %v", st, err)
		}
		return
	}
	b := newBench(t)
	b.apply(w, nil)
	log := filepath.Join(t.TempDir(), "log")
	calls := "execve,fsync,fdatasync,syncfs,sync,renameat,renameat2,linkat,symlinkat,unlinkat,mkdirat,fchmod,fchown,fchownat,utimensat,setxattr,fsetxattr"
	cmd := again(t, tracer(t), "-f", "-qq", "-o", log, "-e", "signal=none", "-e", "trace="+calls)
	cmd.Env = append(cmd.Env, rootVariable+"="+b.root)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	got, err := os.ReadFile(log)
	b.must(err)
	if strings.Count(string(got), "\n") != 1 || !strings.Contains(string(got), "execve(") {
		t.Errorf("more than the start of the test itself:\n%s", got)
	}
}

// vfat and others have no second names.
func TestF04KeptBesideWhereThereAreNoHardLinks(t *testing.T) {
	w := want(t, `{"path":"/etc/it","content":"ours"}`)
	if inChild() {
		b := childBench(t)
		b.remove(record(w, nil), "removed", `"it.nox-saved"`)
		return
	}
	dir := t.TempDir()
	b := benchAt(t, filepath.Join(dir, "root"), filepath.Join(dir, "content"))
	b.apply(w, nil)
	b.write("/etc/it", "theirs", 0o644)
	cmd := again(t, strace(t, "linkat", "error=EPERM", 1, "")...)
	cmd.Env = append(cmd.Env, rootVariable+"="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	b.text("/etc/it.nox-saved", "theirs")
	b.holds("/etc", "it.nox-saved")
}

// killedAnywhere runs the test again in a child that is killed at each call
// that leaves something behind, and then calls settle.
func killedAnywhere(t *testing.T, prepare func(b *bench), settle func(b *bench)) {
	if testing.Short() {
		t.Skip("short: this starts a process for each system call that writes")
	}
	kills := 0
	for _, call := range []string{"fchmod", "fsync", "renameat", "linkat", "unlinkat"} {
		for n := 1; ; n++ {
			dir := t.TempDir()
			b := benchAt(t, filepath.Join(dir, "root"), filepath.Join(dir, "content"))
			prepare(b)
			cmd := again(t, strace(t, call, "signal=KILL", n, "")...)
			cmd.Env = append(cmd.Env, rootVariable+"="+dir)
			out, err := cmd.CombinedOutput()
			if err != nil && strings.Contains(string(out), "FAIL") {
				t.Fatalf("%s %d: %v\n%s", call, n, err, out)
			}
			settle(b)
			if t.Failed() {
				t.Fatalf("killed at %s %d", call, n)
			}
			if err == nil {
				break
			}
			kills++
		}
	}
	if kills == 0 {
		t.Error("the process was never killed: nothing was tested")
	}
	t.Logf("killed at %d points", kills)
}

func TestF09KilledApplyLeavesTheOldFileOrTheNew(t *testing.T) {
	w := want(t, `{"path":"/etc/it","mode":"0600","content":"new"}`)
	if inChild() {
		_, err := childBench(t).try(w, nil)
		if err != nil {
			t.Fatal(err)
		}
		return
	}
	killedAnywhere(t, func(b *bench) { b.write("/etc/it", "old", 0o640) }, func(b *bench) {
		if b.check(w, nil).Same {
			b.text("/etc/it", "new")
		} else {
			b.text("/etc/it", "old")
			b.mode("/etc/it", 0o640)
		}
		b.must(b.kind.Recover(ctx, w.Resource))
		b.holds("/etc", "it")
	})
}

func TestF09H03KilledRemoveGivesBackAndKeepsBesideInTheEnd(t *testing.T) {
	w := want(t, `{"path":"/etc/it","content":"ours"}`)
	if inChild() {
		b := childBench(t)
		before, err := os.ReadFile(filepath.Join(os.Getenv(rootVariable), "before"))
		b.must(err)
		_, _, err = b.kind.Remove(ctx, record(w, before))
		b.must(err)
		return
	}
	before := map[*bench][]byte{}
	killedAnywhere(t, func(b *bench) {
		b.write("/etc/it", "before", 0o640)
		rec := b.apply(w, nil)
		b.write("/etc/it", "theirs", 0o644)
		before[b] = rec.Before
		b.must(os.WriteFile(filepath.Join(b.root, "../before"), rec.Before, 0o600))
	}, func(b *bench) {
		_, _, err := b.kind.Remove(ctx, record(w, before[b]))
		b.must(err)
		b.must(b.kind.Recover(ctx, w.Resource))
		b.text("/etc/it", "before")
		b.mode("/etc/it", 0o640)
		b.text("/etc/it.nox-saved", "theirs")
		b.holds("/etc", "it it.nox-saved")
	})
}
