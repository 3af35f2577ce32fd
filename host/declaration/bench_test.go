package declaration

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// many is a declaration of n resources: of one type, or of all in turn.
func many(n int, types ...string) []byte {
	one := map[string]string{
		"file":      `"path": "/srv/d%[1]d/f", "mode": "0640", "content": "` + strings.Repeat("x", 100) + `"`,
		"package":   `"name": "tool%[1]d", "version": "1.%[1]d-1", "source": "` + dgst + `"`,
		"unit":      `"name": "job%[1]d.timer", "content": "[Timer]\nOnCalendar=daily\n[Install]\nWantedBy=timers.target\n", "enabled": true, "active": true`,
		"container": `"name": "c%[1]d", "image": "` + dgst + `", "args": ["serve"], "env": {"A": "b"}, "mounts": [{"volume": "v%[1]d", "target": "/data"}], "network": "host"`,
		"process":   `"name": "p%[1]d", "command": ["/usr/local/bin/server", "serve"], "env": {"A": "b"}`,
	}
	var list []string
	for i := range n {
		t := types[i%len(types)]
		list = append(list, fmt.Sprintf(`{"id": "r%[1]d", "type": "`+t+`", `+one[t]+`}`, i))
	}
	return []byte(doc(strings.Join(list, ",\n")))
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func BenchmarkParse(b *testing.B) {
	all := []string{"file", "package", "unit", "container", "process"}
	for _, c := range []struct {
		name  string
		n     int
		types []string
	}{
		{"1000", 1000, all}, {"10000", 10000, all}, {"20000", 20000, all},
		{"10000-file", 10000, all[:1]}, {"10000-container", 10000, all[3:4]},
	} {
		doc := many(c.n, c.types...)
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(doc)))
			for b.Loop() {
				if _, err := Parse(doc); err != nil {
					b.Fatal(err)
				}
			}
			before := heap()
			d, err := Parse(doc)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(heap()-before)/float64(c.n), "B-kept/resource")
			runtime.KeepAlive(d)
		})
	}
}

func BenchmarkMarshal(b *testing.B) {
	d, err := Parse(many(10000, "file", "package", "unit", "container", "process"))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := d.Marshal(); err != nil {
			b.Fatal(err)
		}
	}
}
