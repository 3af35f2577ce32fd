package cgroup

import (
	"os"
	"path/filepath"
	"testing"
)

func TestMemory(t *testing.T) {
	const none = "9223372036854771712\n"
	v1 := map[string]string{
		"proc/self/cgroup":    "9:name=systemd:/\n4:cpu,memory:/a/b\n0::/x\n",
		"proc/self/mountinfo": "30 20 0:26 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory\n31 20 0:27 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n",
	}
	v2 := map[string]string{
		"proc/self/cgroup":    "0::/a/b\n",
		"proc/self/mountinfo": "30 20 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n",
	}
	own := map[string]string{
		"proc/self/cgroup":    "0::/a/b\n",
		"proc/self/mountinfo": "30 20 0:26 /a/b /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n",
	}
	for what, c := range map[string]struct {
		machine, limits map[string]string
		want            int64
	}{
		"1, its own":                    {v1, map[string]string{"memory/a/b/memory.limit_in_bytes": "1000\n", "memory/memory.limit_in_bytes": none}, 1000},
		"1, one above":                  {v1, map[string]string{"memory/a/b/memory.limit_in_bytes": "1000\n", "memory/a/memory.limit_in_bytes": "500\n"}, 500},
		"1, none":                       {v1, map[string]string{"memory/a/b/memory.limit_in_bytes": none}, 0},
		"2, its own":                    {v2, map[string]string{"a/b/memory.max": "1000\n", "a/memory.max": "max\n"}, 1000},
		"2, one above":                  {v2, map[string]string{"a/b/memory.max": "max\n", "a/memory.max": "700\n"}, 700},
		"2, none":                       {v2, map[string]string{"a/b/memory.max": "max\n"}, 0},
		"2, only its own group is seen": {own, map[string]string{"memory.max": "800\n"}, 800},
		"another's":                     {v2, map[string]string{"c/memory.max": "1\n"}, 0},
		"no control groups":             {nil, nil, 0},
	} {
		root := t.TempDir()
		write := func(name, text string) {
			name = filepath.Join(root, name)
			if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		for name, text := range c.machine {
			write(name, text)
		}
		for name, text := range c.limits {
			write("sys/fs/cgroup/"+name, text)
		}
		got, ok := memory(root)
		if ok != (c.want > 0) || ok && got != c.want {
			t.Errorf("%s: %d %v, want %d", what, got, ok, c.want)
		}
	}
}
