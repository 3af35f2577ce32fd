package machine

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"

	"golang.org/x/sys/unix"
)

const (
	// keeperArgument makes Main run the keeper instead of the tests.
	keeperArgument = "nox-lab-keeper"
	keeperReady    = "ready"
)

// Main is the TestMain of a package with machine tests: it runs the tests, or
// is the keeper of a lab when Start executes the program again.
func Main(m interface{ Run() int }) {
	if len(os.Args) == 4 && os.Args[1] == keeperArgument {
		os.Exit(keep(os.Args[2], os.Args[3]))
	}
	os.Exit(m.Run())
}

// keep is PID 1 of a lab. It sets the namespaces up, adopts orphans, and when
// standard input ends, clears up and ends, and everything in the lab with it.
func keep(dir, name string) int {
	// A terminal's ^C is the test's business; its death is ours.
	signal.Ignore(unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGPIPE)
	if err := ownMounts(); err != nil {
		fmt.Println(err)
		return 1
	}
	children := make(chan os.Signal, 1)
	signal.Notify(children, unix.SIGCHLD)
	go func() { // lives as long as the process
		for range children {
			reap()
		}
	}()
	fmt.Println(keeperReady)
	_, _ = io.Copy(io.Discard, os.Stdin)
	if err := clearUp(dir, name); err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

// ownMounts hides this computer's processes and runtime state from the lab,
// and keeps the lab's mounts from this computer.
func ownMounts() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("cannot make the mounts private: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("cannot mount /proc: %w", err)
	}
	// Network namespaces get names in /run, and nspawn leaves folders there.
	if err := unix.Mount("tmpfs", "/run", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755"); err != nil {
		return fmt.Errorf("cannot mount /run: %w", err)
	}
	return nil
}

// reap takes the exit status of every child that has one.
func reap() {
	for {
		pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
		if err == unix.EINTR {
			continue
		}
		if pid <= 0 {
			return
		}
	}
}

// clearUp ends all other processes of the lab and removes what would outlive its
// namespaces.
func clearUp(dir, name string) error {
	// For PID 1 this is every process of the namespace but itself, kill(2).
	if err := unix.Kill(-1, unix.SIGKILL); err != nil && err != unix.ESRCH {
		return fmt.Errorf("cannot end the machines: %w", err)
	}
	roots, err := filepath.Glob(filepath.Join(dir, "*", "root"))
	if err != nil {
		return err
	}
	for _, r := range roots {
		// EINVAL: the machine came no further than its folder.
		if err := unix.Unmount(r, unix.MNT_DETACH); err != nil && err != unix.EINVAL {
			return fmt.Errorf("cannot unmount %q: %w", r, err)
		}
	}
	return errors.Join(removeCgroups(name, ""), os.RemoveAll(dir))
}
