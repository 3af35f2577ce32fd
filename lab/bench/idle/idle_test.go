package idle

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nox-mesh/nox-mesh/internal/cli"
	"github.com/nox-mesh/nox-mesh/internal/clock"
	"github.com/nox-mesh/nox-mesh/lab/firstnode"
	"github.com/nox-mesh/nox-mesh/lab/machine"
)

var (
	long  = flag.Duration("idle", 10*time.Minute, "how long nobody asks anything")
	every = flag.String("interval", "10m", "reconcile_interval of the hosts")
)

func TestMain(m *testing.M) { machine.Main(m) }

// BenchmarkIdle lets two nodes, one of which carries the control plane, be.
func BenchmarkIdle(b *testing.B) {
	lab := machine.Start(b)
	alpha, beta := raise(b, lab)
	watched := []*service{{m: beta, unit: "mesh-host"}, {m: alpha, unit: "mesh-host"}, {m: alpha, unit: "nox-mesh-controller"}}
	for b.Loop() {
		for _, s := range watched {
			s.begin(b)
		}
		began, look := time.Now(), time.NewTicker(min(*long, 5*time.Second))
		for time.Since(began) < *long {
			<-look.C
			for _, s := range watched {
				s.look(b)
			}
		}
		look.Stop()
		took := time.Since(began)
		fmt.Printf("\nidle for %s, reconcile_interval %s, load %s", took.Round(time.Second), *every, loadavg(b))
		fmt.Printf("%-28s %8s %8s %8s %8s %7s %5s %8s %10s\n", "", "RSS MiB", "max", "anon", "peak", "cpu %", "fds", "threads", "wakeups/s")
		for _, s := range watched {
			now, n := s.now, took.Seconds()
			fmt.Printf("%-28s %8.1f %8.1f %8.1f %8.1f %7.3f %5d %8d %10.1f\n", s.m.Name()+" "+s.unit, mib(now.rss), mib(s.max), mib(now.anon), mib(now.peak),
				100*(now.cpu-s.first.cpu).Seconds()/n, now.fds, now.threads, float64(now.wakeups-s.first.wakeups)/n)
		}
		b.ReportMetric(mib(watched[0].max), "MiB")
		b.ReportMetric(100*(watched[0].now.cpu-watched[0].first.cpu).Seconds()/took.Seconds(), "%cpu")
	}
}

// raise makes a mesh of two machines, and returns when both have what they shall.
func raise(b *testing.B, lab *machine.Lab) (alpha, beta *machine.Machine) {
	b.Helper()
	node := &firstnode.Node{Dir: filepath.Join(b.TempDir(), "node"), Std: cli.Stdio{Out: os.Stderr, Err: os.Stderr}, Clock: clock.System}
	dist, err := node.Release(b.Context())
	if err != nil {
		b.Fatalf("cannot make a release: %v", err)
	}
	alpha, beta = lab.Boot("alpha"), lab.Boot("beta")
	for _, m := range []*machine.Machine{alpha, beta} {
		m.Put("/root/host.tar.gz", 0o644, one(b, dist, "nox-mesh-host-*.tar.gz"))
		m.Must("tar", "-C", "/root", "-xzf", "/root/host.tar.gz")
		m.Must("/root/nox-mesh-host-"+firstnode.Version+"/mesh-host", "install")
		m.WriteFile("/etc/nox-mesh/host.toml", 0o644, fmt.Sprintf("reconcile_interval = %q\n", *every))
		m.Must("systemctl", "reload", "mesh-host")
	}
	alpha.Put("/root/bundle.tar", 0o644, one(b, dist, "*.bundle.tar"))
	alpha.Must("mesh-host", "bootstrap", "/root/bundle.tar")
	for _, m := range []*machine.Machine{alpha, beta} {
		token := alpha.Must("mesh-controller", "token", "create")
		if out, err := m.Pipe(b.Context(), strings.NewReader(token), "mesh-host", "enrol", "-"); err != nil {
			b.Fatalf("cannot enrol %s: %v\n%s", m.Name(), err, out)
		}
	}
	alpha.WriteFile("/root/web.json", 0o600, `{"schema": 1, "name": "web", "resources": [
		{"id": "page", "type": "file", "path": "/srv/page", "content": "hello\n"},
		{"id": "sleeper", "type": "process", "name": "sleeper", "command": ["/bin/sleep", "infinity"], "user": "nobody"}]}`)
	alpha.Must("mesh-controller", "declare", "web", "/root/web.json", "--on", "every")
	end := time.Now().Add(time.Minute)
	for strings.Count(alpha.Must("mesh-controller", "nodes"), "2/2") != 2 {
		if time.Now().After(end) {
			b.Fatalf("the nodes did not get there:\n%s", alpha.Must("mesh-controller", "nodes"))
		}
		time.Sleep(100 * time.Millisecond)
	}
	return alpha, beta
}

func one(b *testing.B, dir, pattern string) string {
	b.Helper()
	found, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(found) != 1 {
		b.Fatalf("the release has %d files %q, not one (%v)", len(found), pattern, err)
	}
	return found[0]
}

// A service is one that is watched.
type service struct {
	m          *machine.Machine
	unit, pid  string
	first, now usage
	max        int // of rss
}

// A usage is what a service had taken at one moment; memory in kB, as proc(5) has it.
type usage struct {
	rss, anon, peak, fds, threads, wakeups int
	cpu                                    time.Duration
}

func (s *service) begin(b *testing.B) {
	b.Helper()
	s.pid, s.max = s.m.Must("systemctl", "show", "-P", "MainPID", s.unit), 0
	s.look(b)
	s.first = s.now
}

func (s *service) look(b *testing.B) {
	b.Helper()
	if pid := s.m.Must("systemctl", "show", "-P", "MainPID", s.unit); pid != s.pid {
		b.Fatalf("%s of %s was restarted", s.unit, s.m.Name())
	}
	out := s.m.Must("sh", "-euc", `cd /proc/$1; cat status task/*/status; echo "Descriptors: $(ls fd | wc -l)"; echo "Nanoseconds: $(systemctl show -P CPUUsageNSec $2)"`, "sh", s.pid, s.unit)
	sum, first := map[string]int{}, map[string]int{}
	for line := range strings.Lines(out) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		n, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(value), " kB"))
		if err != nil {
			continue
		}
		if _, again := first[name]; !again {
			first[name] = n
		} else {
			sum[name] += n // of its threads
		}
	}
	s.now = usage{rss: first["VmRSS"], anon: first["RssAnon"], peak: first["VmHWM"], fds: first["Descriptors"], threads: first["Threads"],
		wakeups: sum["voluntary_ctxt_switches"], cpu: time.Duration(first["Nanoseconds"])}
	if s.now.rss == 0 || s.now.cpu == 0 {
		b.Fatalf("cannot read what %s takes:\n%s", s.unit, out)
	}
	s.max = max(s.max, s.now.rss)
}

func mib(kb int) float64 { return float64(kb) / 1024 }

func loadavg(b *testing.B) string {
	b.Helper()
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		b.Fatal(err)
	}
	return string(text)
}
