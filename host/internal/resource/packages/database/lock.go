package database

import (
	"fmt"
	"strings"
)

// A Lock is who holds the database of a package manager at a moment.
type Lock struct {
	// By says who holds it ("process 4711 (pacman)"), or is "" when it is free.
	By string
	// Break takes a lock away that no process holds; nil when one does, or
	// nobody knows.
	Break func() error
	// Old: it is older than the boot of this machine.
	Old bool
}

// Process names a process for people.
func Process(pid int) string {
	b, err := ReadFile(fmt.Sprintf("/proc/%d/comm", pid), 4096)
	if err != nil || len(b) == 0 {
		return fmt.Sprintf("process %d", pid)
	}
	return fmt.Sprintf("process %d (%s)", pid, strings.TrimSpace(string(b)))
}
