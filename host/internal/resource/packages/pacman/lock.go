package pacman

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/nox-mesh/nox-mesh/host/internal/resource/packages/database"
	"github.com/nox-mesh/nox-mesh/internal/durable"
)

const lockName = "db.lck"

// Lock says who holds the database. Nothing is written in db.lck; who made it
// has it open until the end (libalpm, handle.c).
func (m *Manager) Lock() (database.Lock, error) {
	c, err := m.config()
	if err != nil {
		return database.Lock{}, err
	}
	name := filepath.Join(m.layout.Path(c.database), lockName)
	fi, err := os.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return database.Lock{}, nil
	}
	if err != nil {
		return database.Lock{}, fmt.Errorf("cannot look at the lock of pacman: %w", err)
	}
	pid, known, err := opener("/proc", fi)
	switch {
	case err != nil:
		return database.Lock{}, err
	case pid != 0:
		return database.Lock{By: database.Process(pid)}, nil
	case !known:
		return database.Lock{By: fmt.Sprintf("%q, and not all processes can be asked whether they have it open", name)}, nil
	}
	booted, err := bootTime()
	if err != nil {
		return database.Lock{}, err
	}
	return database.Lock{
		By: fmt.Sprintf("%q, which no process has open", name), Old: fi.ModTime().Before(booted),
		Break: func() error {
			now, err := os.Lstat(name)
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err != nil {
				return err
			}
			if !os.SameFile(fi, now) || !fi.ModTime().Equal(now.ModTime()) {
				return errors.New("somebody else took the lock of pacman")
			}
			return durable.Remove(name)
		},
	}, nil
}

// opener finds a process that has the file open. known is false when there are
// some that cannot be asked.
func opener(proc string, file fs.FileInfo) (pid int, known bool, err error) {
	all, err := os.ReadDir(proc)
	if err != nil {
		return 0, false, fmt.Errorf("cannot list processes: %w", err)
	}
	known = true
	for _, p := range all {
		pid, err := strconv.Atoi(p.Name())
		if err != nil {
			continue
		}
		dir := filepath.Join(proc, p.Name(), "fd")
		fds, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !strings.Contains(err.Error(), "no such process") {
			known = false
			continue
		}
		for _, fd := range fds {
			link := filepath.Join(dir, fd.Name())
			// Only what is called so is looked at closely: that may be on a
			// file system whose server is gone.
			if target, err := os.Readlink(link); err != nil || filepath.Base(target) != lockName {
				continue
			}
			if fi, err := os.Stat(link); err == nil && os.SameFile(fi, file) {
				return pid, true, nil
			}
		}
	}
	return 0, known, nil
}

// bootTime is btime of proc_stat(5).
func bootTime() (time.Time, error) {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return time.Time{}, fmt.Errorf("cannot tell when this machine was booted: %w", err)
	}
	for line := range strings.Lines(string(b)) {
		if v, ok := strings.CutPrefix(line, "btime "); ok {
			if n, err := strconv.ParseInt(strings.TrimSpace(v), 10, 64); err == nil {
				return time.Unix(n, 0), nil
			}
		}
	}
	return time.Time{}, errors.New("cannot tell when this machine was booted: /proc/stat has no btime")
}
