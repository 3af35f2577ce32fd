package file

import (
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

func TestF02SymlinkAtTheNameIsReplacedAndItsTargetNeverWritten(t *testing.T) {
	null, err := os.Stat(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{
		"to a file": "other", "to /dev/null": "/dev/null", "dangling": "nowhere", "to a directory": "dir",
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.write("/etc/other", "theirs", 0o600)
			b.mkdir("/etc/dir", 0o755)
			b.link("/etc/it", target)
			w := want(t, `{"path":"/etc/it","content":"new"}`)
			rec := b.apply(w, nil)
			b.text("/etc/it", "new")
			b.text("/etc/other", "theirs")
			b.mode("/etc/other", 0o600)
			b.holds("/etc/dir", "")
			b.holds("/etc", "dir it other")

			b.remove(rec, "removed", "")
			if got, err := os.Readlink(b.path("/etc/it")); got != target {
				t.Errorf("given back: %q, %v; want the symlink to %q", got, err, target)
			}
			if now, err := os.Stat(os.DevNull); err != nil || !os.SameFile(null, now) || now.Mode() != null.Mode() {
				t.Errorf("%s was touched: %v, %v", os.DevNull, now, err)
			}
		})
	}
}

func TestF07ModeIsExactWhateverTheUmask(t *testing.T) {
	for _, umask := range []int{0, 0o077} {
		b := newBench(t)
		old := syscall.Umask(umask)
		b.apply(want(t, `{"path":"/etc/it","mode":"4755","content":"x"}`), nil)
		b.apply(want(t, `{"path":"/etc/dir","mode":"1751","directory":true}`), nil)
		b.apply(want(t, `{"path":"/etc/a/b/it","mode":"0600","content":"x"}`), nil)
		syscall.Umask(old)
		b.mode("/etc/it", 0o4755)
		b.mode("/etc/dir", 0o1751)
		b.mode("/etc/a", 0o755)
		b.mode("/etc/a/b", 0o755)
		b.mode("/etc/a/b/it", 0o600)
	}
}

func TestF07SetuidSurvivesTheOwner(t *testing.T) {
	needRoot(t)
	b := newBench(t)
	b.apply(want(t, `{"path":"/etc/it","mode":"6755","owner":"4711","group":"4712","content":"x"}`), nil)
	b.mode("/etc/it", 0o6755)
	var st unix.Stat_t
	b.must(unix.Lstat(b.path("/etc/it"), &st))
	if st.Uid != 4711 || st.Gid != 4712 {
		t.Errorf("owner %d:%d", st.Uid, st.Gid)
	}
}

func TestF06UnknownOwnerMakesNothingAndConverges(t *testing.T) {
	needRoot(t)
	b := newBench(t)
	b.write("/etc/passwd", "root:x:0:0::/:/bin/sh\n", 0o644)
	w := want(t, `{"path":"/etc/new/it","owner":"web","group":"web","content":"x"}`)
	if st := b.check(w, nil); st.Same {
		t.Error("Check says Same")
	}
	b.fails(w, `cannot write "/etc/new/it"`, `there is no user "web" in /etc/passwd yet`)
	b.write("/etc/passwd", "web:x:501:502::/:/bin/sh\n", 0o644)
	b.fails(w, `there is no group "web" in /etc/group yet`)
	b.holds("/etc", "passwd")

	b.write("/etc/group", "root:x:0:\nweb:x:503:\n", 0o644)
	b.apply(w, nil)
	var st unix.Stat_t
	b.must(unix.Lstat(b.path("/etc/new/it"), &st))
	if st.Uid != 501 || st.Gid != 503 {
		t.Errorf("owner %d:%d", st.Uid, st.Gid)
	}
}

func TestAnOrdinaryUserSetsNoOwner(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root sets owners")
	}
	b := newBench(t)
	b.apply(want(t, `{"path":"/etc/it","owner":"nobody-has-this","content":"x"}`), nil)
}

func TestF11NothingElseIsReplacedAndTheErrorNamesIt(t *testing.T) {
	make := map[string]func(b *bench, p string){
		"directory": func(b *bench, p string) { b.mkdir(p, 0o755) },
		"fifo":      func(b *bench, p string) { b.must(unix.Mkfifo(b.path(p), 0o600)) },
		"socket":    func(b *bench, p string) { b.must(unix.Mknod(b.path(p), unix.S_IFSOCK|0o600, 0)) },
		"character device": func(b *bench, p string) {
			if err := unix.Mknod(b.path(p), unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3))); err != nil {
				b.Skipf("no device can be made here: %v", err)
			}
		},
	}
	for what, prepare := range make {
		for _, spec := range []string{`"content":"x"`, `"target":"x"`} {
			t.Run(what+" "+spec, func(t *testing.T) {
				b := newBench(t)
				prepare(b, "/etc/it")
				before, err := os.Lstat(b.path("/etc/it"))
				b.must(err)
				b.fails(want(t, `{"path":"/etc/it","take_over":true,`+spec+`}`), "a "+what+" is there")
				after, err := os.Lstat(b.path("/etc/it"))
				b.must(err)
				if !os.SameFile(before, after) || after.Mode() != before.Mode() {
					t.Errorf("it was touched: %v", after.Mode())
				}
				b.holds("/etc", "it")
			})
		}
	}
}

func TestF11ADirectoryReplacesNothing(t *testing.T) {
	b := newBench(t)
	b.write("/etc/it", "theirs", 0o600)
	b.link("/etc/link", ".")
	b.fails(want(t, `{"path":"/etc/it","directory":true}`), `cannot make the directory "/etc/it"`, "a file is there")
	b.fails(want(t, `{"path":"/etc/link","directory":true}`), "a symlink is there")
	b.text("/etc/it", "theirs")
	b.holds("/etc", "it link")
}

func TestAFileOnTheWayIsNamed(t *testing.T) {
	b := newBench(t)
	b.write("/etc/f", "", 0o600)
	b.fails(want(t, `{"path":"/etc/f/it","content":"x"}`), `cannot look at "/etc/f/it"`, `"/etc/f" on its way is a file, not a directory`)
}

func TestDamagedOrMissingContentIsNeverPutInPlace(t *testing.T) {
	b := newBench(t)
	d := b.add("good")
	b.must(os.WriteFile(b.store.Dir()+"/blobs/sha256/"+d.Encoded(), []byte("evil"), 0o600))
	b.write("/etc/it", "old", 0o600)
	w := want(t, `{"path":"/etc/it","source":"`+d.String()+`"}`)
	b.fails(w, "damaged")
	b.text("/etc/it", "old")
	b.must(b.store.Drop(d))
	_, err := b.try(w, nil)
	saysAll(t, err, d.String(), "is not in the content store")
	if fault.RemedyOf(err) == "" {
		t.Error("no remedy")
	}
	b.text("/etc/it", "old")
	b.holds("/etc", "it")
}

func TestF12ALargeSourceIsCopiedInFlatMemory(t *testing.T) {
	b := newBench(t)
	text := strings.Repeat("0123456789abcdef", 2<<20)
	w := want(t, `{"path":"/etc/it","source":"`+b.add(text).String()+`"}`)
	st := b.check(w, nil)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err := b.kind.Apply(ctx, w, nil, st)
	runtime.ReadMemStats(&after)
	b.must(err)
	if n := after.TotalAlloc - before.TotalAlloc; n > 2<<20 {
		t.Errorf("%d bytes were allocated", n)
	}
	b.text("/etc/it", text)
}

// Changing owner and mode in place would reach every name of the inode.
func TestOtherNamesOfTheInodeAreLeftAlone(t *testing.T) {
	b := newBench(t)
	b.write("/etc/precious", "x", 0o600)
	b.must(os.Link(b.path("/etc/precious"), b.path("/etc/it")))
	b.apply(want(t, `{"path":"/etc/it","mode":"0666","content":"x"}`), nil)
	b.mode("/etc/it", 0o666)
	b.mode("/etc/precious", 0o600)
}

func TestWhatAppearsAfterTheLookIsNotOverwritten(t *testing.T) {
	b := newBench(t)
	w := want(t, `{"path":"/etc/it","content":"new"}`)
	st := b.check(w, nil)
	b.write("/etc/it", "theirs", 0o644)
	saysAll(t, b.kind.Apply(ctx, w, nil, st), "it changed while the host was at work on it")
	b.text("/etc/it", "theirs")

	st = b.check(w, nil)
	b.write("/etc/it", "newest", 0o644)
	saysAll(t, b.kind.Apply(ctx, w, nil, st), "it changed while the host was at work on it")
	b.text("/etc/it", "newest")
	b.holds("/etc", "it")
}

func TestATooLargeFileIsReplacedOnlyByTakeOver(t *testing.T) {
	b := newBench(t)
	b.write("/etc/it", "", 0o644)
	b.must(os.Truncate(b.path("/etc/it"), MaxKept+1))
	b.fails(want(t, `{"path":"/etc/it","content":"new"}`), "67108865 bytes")
	rec := b.apply(want(t, `{"path":"/etc/it","content":"new","take_over":true}`), nil)
	if refs, err := References(rec.Before); err != nil || len(refs) > 0 {
		t.Errorf("References: %v, %v", refs, err)
	}
	b.remove(rec, "removed", "too large to be kept")
	b.holds("/etc", "")
}

func TestF09RecoverSweepsWhatACrashLeft(t *testing.T) {
	b := newBench(t)
	b.must(os.WriteFile(b.temp("/etc/it"), []byte("half"), 0o600))
	b.must(b.kind.Recover(ctx, want(t, `{"path":"/etc/it","content":"x"}`).Resource))
	b.must(b.kind.Recover(ctx, want(t, `{"path":"/no/such/dir/it","content":"x"}`).Resource))
	b.holds("/etc", "")
}
