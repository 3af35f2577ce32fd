package store

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// strace counts the calls of each thread for itself: those on the store are all
// of one.
func init() {
	if os.Getenv("STORE_TEST_OPEN") != "" {
		runtime.LockOSThread()
	}
}

// TestMain is the program that opens a store under strace.
func TestMain(m *testing.M) {
	path := os.Getenv("STORE_TEST_OPEN")
	if path == "" {
		os.Exit(m.Run())
	}
	s, err := Open(path, noon, slog.New(slog.NewTextHandler(os.Stderr, nil)))
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	records, err := s.Records()
	fmt.Println(len(records), "records", err)
}

// opened opens the store while the calls on it fail as strace injects, and returns
// what was said.
func opened(t *testing.T, path string, faults ...string) (out string, err error) {
	t.Helper()
	strace, err := exec.LookPath("strace")
	if err != nil || exec.Command(strace, "-f", "-o", "/dev/null", "-e", "trace=none", "true").Run() != nil {
		t.Skip("strace is not here, or does not work")
	}
	log := filepath.Join(t.TempDir(), "log")
	args := []string{"-f", "-qq", "-o", log, "-P", path, "-e", "trace=openat,read,pread64"}
	for _, f := range faults {
		args = append(args, "-e", "inject="+f)
	}
	c := exec.Command(strace, append(args, os.Args[0])...)
	c.Env = append(os.Environ(), "STORE_TEST_OPEN="+path)
	b, err := c.CombinedOutput()
	if calls, _ := os.ReadFile(log); !bytes.Contains(calls, []byte("INJECTED")) {
		t.Fatalf("no call failed:\n%s\n%s", calls, b)
	}
	return string(b), err
}

func TestH02UnreadableStoreIsSetAsideAloud(t *testing.T) {
	for name, c := range map[string]struct {
		faults []string
		cause  string
	}{
		"a disk that gives no bytes":      {[]string{"pread64:error=EIO", "read:error=EIO"}, "input/output error"},
		"a disk that gave none for once":  {[]string{"pread64:error=EIO"}, "invalid database"},
		"a file that does not open":       {[]string{"openat:error=EIO:when=1"}, "input/output error"},
		"a file system's own checksum":    {[]string{"openat:error=EUCLEAN:when=1"}, "structure needs cleaning"},
		"a security module keeps it from": {[]string{"openat:error=EACCES:when=1..2"}, "permission denied"},
	} {
		t.Run(name, func(t *testing.T) {
			if strings.Contains(c.cause, "permission") && os.Geteuid() != 0 {
				t.Skip("root alone sets aside what it may not read")
			}
			path := holding(t)
			was, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			out, err := opened(t, path, c.faults...)
			if err != nil || !strings.Contains(out, "0 records <nil>") {
				t.Errorf("%v\n%s", err, out)
			}
			if !strings.Contains(out, "level=ERROR") || !strings.Contains(out, c.cause) {
				t.Errorf("what is said of it:\n%s", out)
			}
			// Nothing of it is lost: back under its name, it is what it was.
			aside := SetAside(path)
			if len(aside) != 1 {
				t.Fatalf("set aside: %q", aside)
			}
			if is, err := os.ReadFile(aside[0]); err != nil || !bytes.Equal(is, was) {
				t.Errorf("what was set aside is not what was there: %v", err)
			}
			if err := os.Rename(aside[0], path); err != nil {
				t.Fatal(err)
			}
			reads(t, reopen(t, path), "put back")
		})
	}
}

// What passes by itself is no reason to begin anew.
func TestH02AStoreThatCannotBeOpenedNowStays(t *testing.T) {
	for _, errno := range []string{"EMFILE", "ENOMEM", "ENOSPC"} {
		path := holding(t)
		if out, err := opened(t, path, "openat:error="+errno); err == nil || !strings.Contains(out, "cannot open store") {
			t.Errorf("%s: %v\n%s", errno, err, out)
		}
		if aside := SetAside(path); len(aside) != 0 {
			t.Errorf("%s: set aside as %q", errno, aside)
		}
		reads(t, reopen(t, path), errno)
	}
}
