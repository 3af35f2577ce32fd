package profile

import (
	"bytes"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// release reads os-release(5): the first of the two that says who it is.
func (s source) release() (map[string]string, error) {
	b, err := read(s.files.Path("/etc/os-release"))
	if m := osRelease(b); m["ID"] != "" {
		return m, nil
	}
	b, second := read(s.files.Path("/usr/lib/os-release"))
	m := osRelease(b)
	if err == nil {
		err = second
	}
	if m["ID"] != "" {
		err = nil
	}
	return m, err
}

// osRelease reads the assignments of os-release(5). The values we ask for hold
// no escapes in any distribution; one that does is left out by clean.
func osRelease(b []byte) map[string]string {
	m := map[string]string{}
	for line := range bytes.Lines(b) {
		k, v, ok := strings.Cut(strings.TrimSpace(string(line)), "=")
		if !ok || strings.HasPrefix(k, "#") {
			continue
		}
		if n := len(v); n >= 2 && (v[0] == '"' || v[0] == '\'') && v[n-1] == v[0] {
			v = v[1 : n-1]
		}
		if k == "ID_LIKE" {
			m[k] = strings.TrimSpace(v)
			continue
		}
		m[k] = clean(v)
	}
	return m
}

// init is sd_booted(3).
func (s source) init() string {
	if exists(s.files, "/run/systemd/system") {
		return "systemd"
	}
	return "none"
}

func kernel() string {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return ""
	}
	return clean(unix.ByteSliceToString(u.Release[:]))
}

// hostname is the one in force; a root has none but the one it is to have.
func (s source) hostname() (string, error) {
	if !s.files.IsMachine() {
		b, err := read(s.files.Path("/etc/hostname"))
		if h := clean(string(b)); h != "" || err != nil && s.alone() {
			return h, err
		}
	}
	h, err := os.Hostname()
	return clean(h), err
}

func (s source) memory() (int64, error) {
	b, err := read(s.kernel.Path("/proc/meminfo"))
	return memory(b), err
}

// memory reads MemTotal of proc_meminfo(5), which is in KiB.
func memory(b []byte) int64 {
	for line := range bytes.Lines(b) {
		f := strings.Fields(string(line))
		if len(f) != 3 || f[0] != "MemTotal:" || f[2] != "kB" {
			continue
		}
		n, err := strconv.ParseInt(f[1], 10, 64)
		if err != nil || n < 0 || n > 1<<50 {
			return 0
		}
		return n << 10
	}
	return 0
}
