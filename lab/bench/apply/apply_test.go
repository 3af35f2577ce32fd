package apply

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"testing"
)

// works are all that are here, ours first.
func works(b *testing.B, dir string, t tree) []work {
	b.Helper()
	out := append([]work{host(b, dir, t)}, cfengine(b, dir, t)...)
	return append(append(out, puppet(b, dir, t)...), floor(b, dir, t))
}

// A result is what a work took, round by round.
type result struct {
	first, again []sample
	// synced is first with what makes it last.
	synced []sample
}

func BenchmarkFiles(b *testing.B) {
	for _, t := range []tree{{10, 4096}, {100, 4096}, {1000, 4096}, {10000, 1024}} {
		b.Run(fmt.Sprint(t.files), func(b *testing.B) {
			dir := b.TempDir()
			list := works(b, dir, t)
			for _, w := range list {
				proven(b, dir, t, w)
			}
			results, rounds := make([]result, len(list)), 0
			for b.Loop() {
				rounds++
				for i, w := range list {
					round(b, dir, t, w, &results[i])
				}
			}
			table(t, list, results, rounds)
			b.ReportMetric(median(results[0].first, wall), "s/first")
			b.ReportMetric(median(results[0].again, wall), "s/second")
		})
	}
}

// proven fails the benchmark unless the work makes the files and undoes an edit
// that only a look at the content tells.
func proven(b *testing.B, dir string, t tree, w work) {
	b.Helper()
	into := fresh(b, dir, t)
	run(b, dir, w.env, w.first...)
	t.seen(b, into)
	if w.looks {
		t.edit(b, into, t.files/2)
		run(b, dir, w.env, w.again...)
		t.seen(b, into)
	}
}

func round(b *testing.B, dir string, t tree, w work, r *result) {
	b.Helper()
	into := fresh(b, dir, t)
	quiet()
	first := run(b, dir, w.env, w.first...)
	r.first = append(r.first, first)
	if !w.durable {
		s := run(b, dir, nil, "sync", "-f", "into")
		r.synced = append(r.synced, sample{first.wall + s.wall, first.cpu + s.cpu, first.mib})
	}
	before := t.seen(b, into)
	quiet()
	r.again = append(r.again, run(b, dir, w.env, w.again...))
	if !slices.Equal(before, t.seen(b, into)) {
		b.Fatalf("%s: the second pass wrote files that were as declared", w.name)
	}
}

func table(t tree, list []work, results []result, rounds int) {
	load, _ := os.ReadFile("/proc/loadavg")
	fmt.Printf("\n%d files of %d bytes, median of %d, load %s", t.files, t.size, rounds, load)
	fmt.Printf("%-24s |%8s %6s %7s %5s |%8s %6s %7s %5s | %s\n", "", "first s", "ratio", "cpu s", "MiB", "second s", "ratio", "cpu s", "MiB", "version")
	row := func(name string, first, again []sample, version string) {
		fmt.Printf("%-24s |%s |%s | %s\n", name, cells(first, results[0].first), cells(again, results[0].again), version)
	}
	for i, w := range list {
		row(w.name, results[i].first, results[i].again, w.version)
		if !w.durable {
			row("  and sync -f", results[i].synced, nil, "")
		}
	}
}

func cells(list, ours []sample) string {
	if list == nil {
		return fmt.Sprintf("%8s %6s %7s %5s", "", "", "", "")
	}
	s := median(list, wall)
	most := slices.MaxFunc(list, func(a, b sample) int { return cmp.Compare(a.mib, b.mib) })
	return fmt.Sprintf("%8.3f %6.2f %7.3f %5.0f", s, s/median(ours, wall), median(list, cpu), mib(most))
}
