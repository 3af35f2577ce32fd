package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// lifetime is how long a machine runs that nobody cuts: the test that began it
// was killed.
const lifetime = 10 * time.Minute

const (
	disk = "/dev/nvme0n1"
	root = "/disk"
)

// prepare makes of a kernel a machine on which the host can run, and returns
// its console.
func prepare() (io.Writer, error) {
	time.AfterFunc(lifetime, powerOff)
	for _, m := range []struct{ what, at string }{{"devtmpfs", "/dev"}, {"proc", "/proc"}, {"tmpfs", "/tmp"}} {
		if err := os.MkdirAll(m.at, 0o755); err != nil {
			return nil, err
		}
		if err := unix.Mount(m.what, m.at, m.what, 0, ""); err != nil {
			return nil, fmt.Errorf("cannot mount %s: %w", m.at, err)
		}
	}
	console, err := os.OpenFile("/dev/ttyS0", os.O_WRONLY|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(root, 0o755); err != nil {
		return console, err
	}
	system, options, err := fileSystem()
	if err != nil {
		return console, err
	}
	if lazy, err := option("nox.lazy"); err != nil {
		return console, err
	} else if lazy != "" {
		options = "commit=300" // ext4(5)
		// proc_sys_vm(5)
		if err := os.WriteFile("/proc/sys/vm/dirty_writeback_centisecs", []byte("0"), 0); err != nil {
			return console, err
		}
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for range tick.C { // the kernel finds it in its own time
		err := unix.Mount(disk, root, system, 0, options)
		if !errors.Is(err, unix.ENOENT) {
			return console, err
		}
	}
	return console, nil
}

// option is what the kernel's command line says of a name.
func option(name string) (string, error) {
	b, err := os.ReadFile("/proc/cmdline")
	for _, word := range strings.Fields(string(b)) {
		if v, ok := strings.CutPrefix(word, name+"="); ok {
			return v, nil
		}
	}
	return "", err
}

// task is what the command line says.
func task(say io.Writer) error {
	jump, err := option("nox.jump")
	switch {
	case err != nil:
		return err
	case jump != "":
		return jumped(say, jump)
	}
	if vfat, err := option("nox.vfat"); err != nil || vfat != "" {
		if err != nil {
			return err
		}
		return tested(say)
	}
	return work(say)
}

// work applies one declaration after the other until there are no more.
func work(say io.Writer) error {
	calls, err := option("nox.unsynced")
	if err != nil {
		return err
	}
	if calls != "" {
		if err := without(strings.Split(calls, ",")); err != nil {
			return fmt.Errorf("cannot take %s away: %w", calls, err)
		}
	}
	first, err := option("nox.first")
	if err != nil {
		return err
	}
	n := 0
	if _, err := fmt.Sscan(first, &n); err != nil {
		return fmt.Errorf("nox.first=%q: %w", first, err)
	}
	for ; ; n++ {
		declaration := fmt.Sprintf("/declarations/%d.json", n)
		if _, err := os.Stat(declaration); errors.Is(err, fs.ErrNotExist) {
			fmt.Fprintf(say, "nox: idle %d\n", n)
			select {} // until lifetime is over
		}
		fmt.Fprintf(say, "nox: applying %d\n", n)
		host := exec.Command("/mesh-host", "--root", root, "--quiet", "apply", declaration)
		host.Env = []string{"PATH=/"}
		if out, err := host.CombinedOutput(); err != nil {
			return fmt.Errorf("to apply %d: %w: %s", n, err, out)
		}
		fmt.Fprintf(say, "nox: done %d\n", n)
	}
}

// powerOff is no cut: what is not written yet is written, so that a machine
// that went wrong can be looked at. qemu ends at a restart (-no-reboot).
func powerOff() {
	unix.Sync()
	_ = unix.Reboot(unix.LINUX_REBOOT_CMD_RESTART)
}
