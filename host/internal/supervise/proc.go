package supervise

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// A stat is what /proc/PID/stat says.
type stat struct {
	pid, parent, group, session int
	start                       uint64
	zombie                      bool
}

// readStat reads the stat of a process; the error is os.ErrNotExist or ESRCH
// when there is none.
func readStat(pid int) (stat, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return stat{}, err
	}
	s, err := parseStat(b)
	s.pid = pid
	return s, err
}

// parseStat reads the fields after the command, which stands in parentheses
// and may hold spaces and parentheses itself (proc_pid_stat(5)).
func parseStat(b []byte) (stat, error) {
	end := bytes.LastIndexByte(b, ')')
	if end < 0 {
		return stat{}, errors.New("cannot read a process's stat: no command in it")
	}
	f := strings.Fields(string(b[end+1:])) // f[0] is field 3
	if len(f) < 20 {
		return stat{}, errors.New("cannot read a process's stat: it is cut")
	}
	parent, err1 := strconv.Atoi(f[1])
	group, err2 := strconv.Atoi(f[2])
	session, err3 := strconv.Atoi(f[3])
	start, err4 := strconv.ParseUint(f[19], 10, 64)
	s := stat{parent: parent, group: group, session: session, start: start, zombie: f[0] == "Z"}
	return s, errors.Join(err1, err2, err3, err4)
}

// processes lists all that /proc shows. One that ends meanwhile is left out.
func processes() ([]stat, error) {
	d, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	var all []stat
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if s, err := readStat(pid); err == nil {
			all = append(all, s)
		}
	}
	return all, nil
}

// bootID names the time since the machine was booted.
func bootID() (string, error) {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(b)), err
}

// procOf names the living process pid.
func procOf(pid int) (Proc, error) {
	boot, err := bootID()
	if err != nil {
		return Proc{}, err
	}
	s, err := readStat(pid)
	return Proc{PID: pid, Start: s.start, Boot: boot}, err
}
