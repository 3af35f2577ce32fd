package file

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// aclOf4711 is an ACL as the kernel stores it (struct posix_acl_xattr_header
// and entries, linux/posix_acl_xattr.h): user rw, user 4711 rw, group r, mask
// rw, others none.
const aclOf4711 = "\x02\x00\x00\x00" +
	"\x01\x00\x06\x00\xff\xff\xff\xff" +
	"\x02\x00\x06\x00\x67\x12\x00\x00" +
	"\x04\x00\x04\x00\xff\xff\xff\xff" +
	"\x10\x00\x06\x00\xff\xff\xff\xff" +
	"\x20\x00\x00\x00\xff\xff\xff\xff"

func (b *bench) setAttribute(p, name, value string) {
	b.Helper()
	if err := unix.Setxattr(b.path(p), name, []byte(value), 0); err != nil {
		b.Skipf("%s cannot be set here: %v", name, err)
	}
}

func (b *bench) attribute(p, name string) string {
	b.Helper()
	v := make([]byte, 1<<10)
	n, err := unix.Getxattr(b.path(p), name, v)
	if err != nil {
		b.Errorf("%s of %s: %v", name, p, err)
		return ""
	}
	return string(v[:n])
}

func TestF03AttributesOfAReplacedFileAreKept(t *testing.T) {
	b := newBench(t)
	b.write("/etc/it", "before", 0o600)
	b.setAttribute("/etc/it", "user.colour", "green")
	w := want(t, `{"path":"/etc/it","content":"new"}`)
	if st := b.check(w, nil); st.Note != "" {
		t.Errorf("note %q", st.Note)
	}
	b.apply(w, nil)
	if got := b.attribute("/etc/it", "user.colour"); got != "green" {
		t.Errorf("the attribute is %q", got)
	}
}

func TestF03AnACLIsKeptUnderExactlyTheMode(t *testing.T) {
	b := newBench(t)
	b.write("/etc/it", "before", 0o600)
	b.setAttribute("/etc/it", acl, aclOf4711)
	rec := b.apply(want(t, `{"path":"/etc/it","mode":"0640","content":"new"}`), nil)
	b.mode("/etc/it", 0o640)
	got := b.attribute("/etc/it", acl)
	// The mask is r now: user 4711 may read and no more (acl(5)).
	if wanted := strings.Replace(aclOf4711, "\x10\x00\x06", "\x10\x00\x04", 1); got != wanted {
		t.Errorf("the ACL is %q, want %q", got, wanted)
	}
	b.apply(want(t, `{"path":"/etc/it","mode":"0600","content":"new"}`), &rec)
	b.mode("/etc/it", 0o600)
}

func TestF03CapabilitiesSurviveTheOwnerAndTheContent(t *testing.T) {
	needRoot(t)
	setcap, err := exec.LookPath("setcap")
	if err != nil {
		t.Skip("setcap is not installed")
	}
	b := newBench(t)
	b.write("/etc/it", "before", 0o755)
	if out, err := exec.Command(setcap, "cap_net_raw+ep", b.path("/etc/it")).CombinedOutput(); err != nil {
		t.Skipf("setcap: %s", out)
	}
	before := b.attribute("/etc/it", "security.capability")
	b.apply(want(t, `{"path":"/etc/it","mode":"0755","owner":"4711","content":"new"}`), nil)
	if got := b.attribute("/etc/it", "security.capability"); got != before {
		t.Errorf("the capabilities are %q, want %q", got, before)
	}
}

func TestF03WhatAStrangerSetIsLostAndSaid(t *testing.T) {
	needRoot(t)
	b := newBench(t)
	b.write("/etc/it", "before", 0o600)
	b.setAttribute("/etc/it", acl, aclOf4711)
	b.must(os.Chown(b.path("/etc/it"), 4711, 4711))
	w := want(t, `{"path":"/etc/it","mode":"0640","content":"new"}`)
	if st := b.check(w, nil); !strings.Contains(st.Note, acl) {
		t.Errorf("note %q", st.Note)
	}
	b.apply(w, nil)
	if _, err := unix.Getxattr(b.path("/etc/it"), acl, nil); err != unix.ENODATA {
		t.Errorf("the ACL is there: %v", err)
	}
}
