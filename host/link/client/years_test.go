package client

import (
	"bytes"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestL10TenYearsOfTrying tries thousands of times what does not come back: the
// tries go on, and neither memory nor the log grows with them.
func TestL10TenYearsOfTrying(t *testing.T) {
	for what, w := range map[string]struct {
		addresses int
		// meet is what becomes of a try; nil is that nobody listens.
		meet func(net.Conn)
	}{
		"closed at once":           {1, func(c net.Conn) { c.Close() }},
		"reset":                    {1, func(c net.Conn) { _ = c.(*net.TCPConn).SetLinger(0); c.Close() }},
		"another speaks":           {1, func(c net.Conn) { fmt.Fprint(c, "220 mail\r\n"); c.Close() }},
		"closed, at two addresses": {2, func(c net.Conn) { c.Close() }},
	} {
		t.Run("L-10 "+what, func(t *testing.T) {
			p, m := newPlane(t), newMachine()
			var tries atomic.Int64
			var addresses []string
			for range w.addresses {
				l, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { l.Close() })
				addresses = append(addresses, l.Addr().String())
				go func() {
					for {
						c, err := l.Accept()
						if err != nil {
							return
						}
						tries.Add(1)
						w.meet(c)
					}
				}()
			}
			cfg := config(t, p.token())
			enrolled(t, p, cfg)
			id, err := LoadIdentity(cfg.Path)
			if err != nil {
				t.Fatal(err)
			}
			id.Addresses = addresses
			if err := id.Save(cfg.Path); err != nil {
				t.Fatal(err)
			}
			var log lines
			run(t, cfg.Path, m, func(c *Config) {
				c.MinBackoff, c.MaxBackoff = time.Microsecond, 10*time.Microsecond
				c.Log = slog.New(slog.NewTextHandler(&log, nil))
			})
			alive := func(from int64) (bytes uint64, goroutines int) {
				for end := time.Now().Add(time.Minute); tries.Load() < from; runtime.Gosched() {
					if time.Now().After(end) {
						t.Fatalf("only %d tries after a minute", tries.Load())
					}
				}
				var s runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&s)
				return s.HeapAlloc, runtime.NumGoroutine()
			}
			const warm, long = 200, 2000
			before, routines := alive(warm)
			said := log.count()
			after, then := alive(long)
			if after > before+1<<20 {
				t.Errorf("%d tries took %d KiB", long-warm, (after-before)>>10)
			}
			if then > routines+20 {
				t.Errorf("%d goroutines became %d", routines, then)
			}
			if n := log.count(); n > said+10 {
				t.Errorf("%d tries were %d lines in the log, among them\n%s", long-warm, n-said, log.last())
			}
		})
	}
}

// lines counts what is written, and keeps the end of it.
type lines struct {
	mu   sync.Mutex
	n    int
	tail []byte
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.n += bytes.Count(b, []byte("\n"))
	l.tail = append(l.tail, b...)
	l.tail = l.tail[max(0, len(l.tail)-1000):]
	return len(b), nil
}

func (l *lines) count() int { l.mu.Lock(); defer l.mu.Unlock(); return l.n }

func (l *lines) last() string { l.mu.Lock(); defer l.mu.Unlock(); return string(l.tail) }
