package main

import (
	"encoding/json"
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

const (
	declared = `{"schema": 1, "name": "jump", "resources": [{"id": "a", "type": "file", "path": "/srv/page", "content": "1"}]}`
	page     = root + "/srv/page"
	// soon is when what a jump brings about must be there: much less than the ten
	// minutes of the host's timer.
	soon = 4 * time.Minute
)

// jumps make the machine's clock jump.
var jumps = map[string]func() error{
	"set": func() error {
		var now unix.Timeval
		if err := unix.Gettimeofday(&now); err != nil {
			return err
		}
		now.Sec += 365 * 24 * 60 * 60
		return unix.Settimeofday(&now)
	},
	// The clock on its board wakes it (Documentation/admin-guide/rtc.rst).
	"suspend": func() error {
		if err := os.WriteFile("/sys/class/rtc/rtc0/wakealarm", []byte("+2"), 0); err != nil {
			return err
		}
		return os.WriteFile("/sys/power/state", []byte("mem"), 0)
	},
}

// jumped lets the clock jump under a host that runs, after a file was taken away
// that it owns:
//
//	nox: applying 1    the host has made its first pass, and is idle
//	nox: done 1        the file is back, by a pass because of the clock
func jumped(say io.Writer, how string) error {
	jump, ok := jumps[how]
	if !ok {
		return fmt.Errorf("nox.jump=%q is none", how)
	}
	if err := os.MkdirAll("/sys", 0o755); err != nil {
		return err
	}
	if err := unix.Mount("sysfs", "/sys", "sysfs", 0, ""); err != nil {
		return err
	}
	if err := os.WriteFile("/tmp/declaration.json", []byte(declared), 0o600); err != nil {
		return err
	}
	if out, err := host("--quiet", "apply", "/tmp/declaration.json").CombinedOutput(); err != nil {
		return fmt.Errorf("to apply: %w: %s", err, out)
	}
	service := host("run")
	service.Stdout, service.Stderr = say, say
	if err := service.Start(); err != nil {
		return err
	}
	if err := until("its first pass", func() (bool, error) { return last() == "start", nil }); err != nil {
		return err
	}
	if err := os.Remove(page); err != nil {
		return err
	}
	fmt.Fprintln(say, "nox: applying 1")
	if err := jump(); err != nil {
		return fmt.Errorf("to jump (%s): %w", how, err)
	}
	err := until("a pass because of the clock", func() (bool, error) {
		_, err := os.Stat(page)
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		return last() == "clock", err
	})
	if err != nil {
		return err
	}
	fmt.Fprintln(say, "nox: done 1")
	select {} // until lifetime is over
}

func host(args ...string) *exec.Cmd {
	c := exec.Command("/mesh-host", append([]string{"--root", root}, args...)...)
	c.Env = []string{"PATH=/"}
	return c
}

// last is what the host's last pass was for, "" when it does not answer yet.
func last() string {
	out, err := host("--json", "status").Output()
	var status struct {
		Running bool
		Last    struct{ Trigger string }
	}
	if err != nil || json.Unmarshal(out, &status) != nil || !status.Running {
		return ""
	}
	return strings.TrimSpace(status.Last.Trigger)
}

func until(what string, ok func() (bool, error)) error {
	over := time.After(soon)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		if yes, err := ok(); yes || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-over:
			return fmt.Errorf("%s did not come", what)
		}
	}
}
