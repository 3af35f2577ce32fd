package file

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/internal/layout"
)

// newOwn is a bench with a host installed.
func newOwn(t *testing.T) *bench {
	t.Helper()
	b := newBench(t)
	for _, p := range []string{
		"/var/lib/nox-mesh/host", "/var/lib/nox-mesh/process/web", "/var/lib/nox-mesh/content/blobs/sha256", "/etc/nox-mesh/trust",
		"/etc/systemd/system/mesh-.service.d", "/usr/local/share", "/usr/lib", "/run/nox-mesh", "/opt", "/mnt", "/srv",
	} {
		b.mkdir(p, 0o755)
	}
	b.write("/etc/systemd/system/mesh-host.service", "theirs", 0o644)
	return b
}

// refuses fails the test unless the file is refused, and is not there after.
func (b *bench) refuses(spec, really string, says ...string) {
	b.Helper()
	w := want(b.T, spec)
	_, err := b.try(w, nil)
	if err == nil || fault.KindOf(err) != fault.Refused {
		b.Errorf("%s: %v", spec, err)
		return
	}
	for _, s := range says {
		if !strings.Contains(err.Error(), s) {
			b.Errorf("%s: the error is %q, want it to say %q", spec, err, s)
		}
	}
	if err := b.kind.Review(w.Resource); fault.KindOf(err) != fault.Refused {
		b.Errorf("%s: Review says %v", spec, err)
	}
	if really != "" {
		if _, err := os.Lstat(b.path(really)); err == nil {
			b.Errorf("%s: %s was written", spec, really)
		}
	}
}

func evil(p string) string { return `{"path":"` + p + `","content":"evil"}` }

func TestU10LinksToTheHostsOwnAreRefusedWhereTheyLead(t *testing.T) {
	b := newOwn(t)
	b.link("/opt/state", "/var/lib/nox-mesh")
	b.link("/opt/lib", "../var/lib")
	b.link("/opt/share", "/usr/local/share")
	b.link("/opt/system", "/etc/systemd/system")
	b.link("/opt/dropins", "system/mesh-.service.d")
	b.refuses(evil("/opt/state/host/identity.json"), "/var/lib/nox-mesh/host/identity.json", "the host's own state")
	b.refuses(evil("/opt/state/new/deep/file"), "/var/lib/nox-mesh/new", "the host's own state")
	b.refuses(evil("/opt/lib/nox-mesh/launcher/mesh-host"), "/var/lib/nox-mesh/launcher", "the host's own state")
	b.refuses(evil("/opt/share/nox-mesh/trust/evil.pub"), "/usr/local/share/nox-mesh", "the host's own trust")
	b.refuses(`{"path":"/opt/share/nox-mesh","target":"/evil"}`, "/usr/local/share/nox-mesh", "can only be a directory")
	b.refuses(`{"path":"/opt/share/nox-mesh","directory":true,"mode":"0777"}`, "/usr/local/share/nox-mesh", "no one but its owner")
	b.refuses(evil("/opt/system/mesh-host.socket"), "/etc/systemd/system/mesh-host.socket", "the host's own unit")
	b.refuses(evil("/opt/dropins/x.conf"), "/etc/systemd/system/mesh-.service.d/x.conf", "the host's own unit")
	b.refuses(`{"path":"/opt/system/x.service","content":"[Unit]\nConflicts=%p-host.service\n"}`, "/etc/systemd/system/x.service", "%p-host.service")
	b.refuses(`{"path":"/opt/system/x.service","target":"mesh-host.service"}`, "/etc/systemd/system/x.service", "the host's own unit")
	b.apply(want(t, `{"path":"/opt/share/nox-mesh","directory":true}`), nil)
	b.apply(want(t, evil("/opt/lib/app/x")), nil)
	b.apply(want(t, evil("/opt/system/web.service.d/x.conf")), nil)
	b.text("/var/lib/app/x", "evil")
}

// A trust directory under the prefix that the installation recorded is own as
// well.
func TestTheRecordedPrefixIsOwn(t *testing.T) {
	b := newOwn(t)
	b.write("/var/lib/nox-mesh/install.json", `{"prefix":"/opt/nox"}`, 0o600)
	b.refuses(evil("/opt/nox/share/nox-mesh/trust/evil.pub"), "/opt/nox", "the host's own trust")
}

// The state directory of an administrator who put it elsewhere.
func TestTheHostsOwnIsKnownWhereASymlinkLeadsToIt(t *testing.T) {
	b := newOwn(t)
	b.must(os.Rename(b.path("/var/lib/nox-mesh"), b.path("/srv/moved")))
	// Relative, as one that the host itself follows below a root.
	b.link("/var/lib/nox-mesh", "../../srv/moved")
	b.refuses(evil("/srv/moved/host/identity.json"), "/srv/moved/host/identity.json", "the host's own state")
	b.refuses(`{"path":"/srv/moved","directory":true,"mode":"0777"}`, "", "the host's own state")
}

func TestU10MountsOfTheHostsOwnAreRefused(t *testing.T) {
	if !inMountNamespace(t) {
		return
	}
	b := newOwn(t)
	bind := func(from, to string) {
		b.Helper()
		b.mkdir(to, 0o755)
		b.must(unix.Mount(b.path(from), b.path(to), "", unix.MS_BIND, ""))
		b.Cleanup(func() { _ = unix.Unmount(b.path(to), unix.MNT_DETACH) })
	}
	bind("/var/lib/nox-mesh", "/mnt/state")
	bind("/var/lib/nox-mesh/process/web", "/mnt/deep")
	bind("/var/lib", "/mnt/lib")
	bind("/etc/nox-mesh/trust", "/mnt/trust")
	bind("/etc/systemd/system", "/mnt/units")
	bind("/etc/systemd/system/mesh-.service.d", "/mnt/dropins")
	bind("/srv", "/mnt/srv")
	b.refuses(evil("/mnt/state/host/w"), "/var/lib/nox-mesh/host/w", "the host's own state")
	b.refuses(evil("/mnt/state/w"), "/var/lib/nox-mesh/w", "the host's own state")
	b.refuses(evil("/mnt/deep/definition.json"), "/var/lib/nox-mesh/process/web/definition.json", "the host's own state")
	b.refuses(evil("/mnt/lib/nox-mesh/x/y"), "/var/lib/nox-mesh/x", "the host's own state")
	b.refuses(evil("/mnt/trust/evil.pub"), "/etc/nox-mesh/trust/evil.pub", "the host's own trust")
	b.refuses(evil("/mnt/units/mesh-host.service"), "", "the host's own unit")
	b.refuses(evil("/mnt/units/service.d/x.conf"), "/etc/systemd/system/service.d", "the host's own unit")
	b.refuses(evil("/mnt/dropins/x.conf"), "/etc/systemd/system/mesh-.service.d/x.conf", "the host's own unit")
	b.refuses(`{"path":"/mnt/lib","directory":true,"mode":"0777"}`, "", "no one but its owner")
	b.apply(want(t, evil("/mnt/srv/x")), nil)
	b.apply(want(t, evil("/mnt/lib/app")), nil)
	b.text("/etc/systemd/system/mesh-host.service", "theirs")
}

// /proc/self/root leads anywhere, whatever the layout's root.
func TestTheProcFileSystemLeadsNowhere(t *testing.T) {
	if !inMountNamespace(t) {
		return
	}
	b := newOwn(t)
	b.mkdir("/proc", 0o755)
	if err := unix.Mount("/proc", b.path("/proc"), "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		t.Skipf("procfs cannot be mounted here: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(b.path("/proc"), unix.MNT_DETACH) })
	b.link("/opt/p", "/proc/self")
	outside := t.TempDir()
	for _, way := range []string{"/proc/self/root", "/proc/1/root", "/proc/self/cwd", "/proc/thread-self/root", "/opt/p/root", "/proc/self/task/1/root"} {
		w := want(t, evil(filepath.Join(way, outside, "x")))
		_, err := b.try(w, nil)
		saysAll(t, err, "on its way")
		if err := b.kind.Review(w.Resource); !strings.HasPrefix(way, "/proc/self/task") && fault.KindOf(err) != fault.Refused {
			t.Errorf("%s: Review says %v", way, err)
		}
	}
	b.refuses(evil("/proc/x"), "", "proc file system")
	if es, _ := os.ReadDir(outside); len(es) > 0 {
		t.Errorf("it was written: %v", es)
	}
}

func TestU10AUnitThatComesByItsDigestIsReadBeforeItIsPutInPlace(t *testing.T) {
	b := newOwn(t)
	bad := b.add("[Unit]\nConflicts=%p-host.service\n").String()
	good := b.add("[Unit]\nConflicts=other.service\n").String()
	nul := b.add("[Unit]\x00Conflicts=other.service\n").String()
	big := b.add(strings.Repeat("#", maxUnit+1)).String()
	for p, says := range map[string]string{
		"/etc/systemd/system/x.service": "%p-host.service", "/etc/systemd/system/x.service.d/y.conf": "%p-host.service",
		"/usr/lib/systemd/system/x.timer": "%p-host.service",
	} {
		b.refuses(`{"path":"`+p+`","source":"`+bad+`"}`, p, says)
	}
	b.refuses(`{"path":"/etc/systemd/system/x.service","source":"`+big+`"}`, "/etc/systemd/system/x.service", "larger than a unit")
	b.refuses(`{"path":"/etc/systemd/system/x.service","source":"`+nul+`"}`, "/etc/systemd/system/x.service", "NUL")
	b.apply(want(t, `{"path":"/etc/systemd/system/x.service","source":"`+good+`"}`), nil)
	b.apply(want(t, `{"path":"/etc/systemd/system-generators/gen","source":"`+big+`"}`), nil)
	b.apply(want(t, `{"path":"/opt/x.service","source":"`+bad+`"}`), nil)
}

// What declaration.Parse cannot see: what is there leads on.
func TestU10ASymlinkOfSystemdsStaysInItsDirectories(t *testing.T) {
	b := newOwn(t)
	const dir = "/etc/systemd/system/"
	b.link(dir+"out", "/srv")
	b.link(dir+"e.conf", "/srv/e.conf")
	b.link(dir+"twice.conf", "e.conf")
	b.link(dir+"loop.conf", "loop.conf")
	b.link(dir+"own.conf", "mesh-host.service")
	b.link(dir+"masked.service", "/dev/null")
	b.link("/opt/units", "/etc/systemd/system")
	for target, says := range map[string]string{
		"/srv/e.conf": "no place of units", "out/e.conf": "no place of units", "e.conf": "no place of units", "twice.conf": "no place of units",
		"loop.conf": "cannot tell", "out/../e.conf": "cannot tell", "own.conf": "the host's own unit", "l.txt": "not the name of a unit",
	} {
		for _, p := range []string{dir + "x.service", "/opt/units/x.service"} {
			b.refuses(`{"path":"`+p+`","target":"`+target+`"}`, dir+"x.service", says)
		}
	}
	b.refuses(`{"path":"/etc/systemd/system.control","target":"system/out"}`, "/etc/systemd/system.control", "no place of units")
	for name, target := range map[string]string{
		"a.service": "b.service", "c.service": "masked.service", "d.service": "/dev/null", "x.target.wants/a.service": "../a.service",
		"e.service": "/usr/lib/systemd/system/e.service", "f.service": "/opt/units/f.service",
	} {
		w := want(t, `{"path":"`+dir+name+`","target":"`+target+`"}`)
		if strings.HasPrefix(target, "/opt") {
			b.refuses(`{"path":"`+dir+name+`","target":"`+target+`"}`, dir+name, "no place of units")
			continue
		}
		b.apply(w, nil)
	}
	b.apply(want(t, `{"path":"/opt/units/g.service","target":"a.service"}`), nil)
	b.apply(want(t, `{"path":"/opt/e.service","target":"/srv/e.conf"}`), nil)
}

// An administrator's /etc/systemd that is a symlink is systemd's all the same.
func TestSystemdsDirectoriesAreKnownWhereASymlinkLeadsToThem(t *testing.T) {
	b := newOwn(t)
	b.must(os.Rename(b.path("/etc/systemd"), b.path("/srv/systemd")))
	b.link("/etc/systemd", "../srv/systemd")
	b.link("/srv/systemd/system/e.conf", "/srv/e.conf")
	b.refuses(`{"path":"/srv/systemd/system/x.service","target":"e.conf"}`, "/srv/systemd/system/x.service", "no place of units")
	b.refuses(`{"path":"/etc/systemd/system/x.service","target":"e.conf"}`, "/srv/systemd/system/x.service", "no place of units")
	b.apply(want(t, `{"path":"/etc/systemd/system/x.service","target":"y.service"}`), nil)
}

// A record of what an older version wrote must not keep the pass from ending.
func TestWhatIsOwnIsReleasedWhenItIsRecorded(t *testing.T) {
	b := newOwn(t)
	rec := b.apply(want(t, evil("/srv/dir/identity.json")), nil)
	b.must(os.RemoveAll(b.path("/srv/dir")))
	b.link("/srv/dir", "/var/lib/nox-mesh/host")
	b.write("/var/lib/nox-mesh/host/identity.json", "evil", 0o644)
	b.must(os.WriteFile(filepath.Join(b.root, "var/lib/nox-mesh/host", filepath.Base(b.temp("/x/identity.json"))), nil, 0o600))
	b.must(b.kind.Recover(ctx, want(t, evil("/srv/dir/identity.json")).Resource))
	b.remove(rec, declaration.Released, "the host's own state")
	b.text("/var/lib/nox-mesh/host/identity.json", "evil")
	b.holds("/var/lib/nox-mesh/host", filepath.Base(b.temp("/x/identity.json"))+" identity.json")
}

func TestDamagedContentIsThrownAwayToBeFetchedAgain(t *testing.T) {
	b := newBench(t)
	d := b.add("good")
	b.must(os.WriteFile(b.store.Dir()+"/blobs/sha256/"+d.Encoded(), []byte("evil"), 0o600))
	w := want(t, `{"path":"/etc/it","source":"`+d.String()+`"}`)
	b.fails(w, "damaged", "thrown away", "fetched again")
	if b.store.Has(d, -1) {
		t.Error("the damaged content is still there")
	}
	b.add("good")
	b.apply(w, nil)
	b.text("/etc/it", "good")
}

func BenchmarkCheck(b *testing.B) {
	root := b.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "etc/app/conf.d"), 0o755); err != nil {
		b.Fatal(err)
	}
	k := New(Config{Layout: layout.Layout{Root: root}})
	w := want(b, evil("/etc/app/conf.d/x"))
	if err := os.WriteFile(filepath.Join(root, "etc/app/conf.d/x"), []byte("evil"), 0o644); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := k.Check(ctx, w, nil); err != nil {
			b.Fatal(err)
		}
	}
}
