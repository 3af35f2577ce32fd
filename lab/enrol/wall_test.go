package enrol

import (
	"encoding/binary"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/nox-mesh/nox-mesh/lab/fleet"
)

// A wall stands between hosts and their control plane, and passes on TLS records
// (RFC 8446, 5.1), one at a time and whole: what is between two of them is
// between any two steps of the two ends.
type wall struct {
	net.Listener
	to string

	mu    sync.Mutex
	conns map[net.Conn]bool
	// passed counts the records since arm; at that of number at the fault comes,
	// after the record was delivered or instead.
	passed, at int
	deliver    bool
	fault      func()
	fired      chan struct{}
	// each, if set, is asked for each record from the control plane that is the
	// first after one of the host's, once the handshake is over; false loses it
	// and the connection.
	each func() bool
}

// build builds a wall on another machine than the control plane's.
func build(t *testing.T, to string) *wall {
	t.Helper()
	fleet.Require(t)
	l, err := net.Listen("tcp", net.JoinHostPort(fleet.Source(1).String(), "0"))
	if err != nil {
		t.Fatal(err)
	}
	w := &wall{Listener: l, to: to, conns: map[net.Conn]bool{}}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { w.pass(c) })
		}
	})
	t.Cleanup(func() { l.Close(); w.cut(); all.Wait() })
	return w
}

// arm lets the fault come at record at.
func (w *wall) arm(at int, deliver bool, fault func()) (fired <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.passed, w.at, w.deliver, w.fault, w.fired = 0, at, deliver, fault, make(chan struct{})
	return w.fired
}

// disarm waits for a fault under way, and returns how many records passed.
func (w *wall) disarm() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fault = nil
	return w.passed
}

// now lets the fault come, if it has not.
func (w *wall) now() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fire()
}

// fire is the fault; mu is held.
func (w *wall) fire() {
	if w.fault == nil {
		return
	}
	w.fault()
	w.fault = nil
	for c := range w.conns {
		c.Close()
	}
	close(w.fired)
}

func (w *wall) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := range w.conns {
		c.Close()
	}
}

func (w *wall) pass(host net.Conn) {
	defer host.Close()
	plane, err := net.Dial("tcp", w.to)
	if err != nil {
		return
	}
	defer plane.Close()
	w.mu.Lock()
	w.conns[host], w.conns[plane] = true, true
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.conns, host)
		delete(w.conns, plane)
	}()
	asked := 0 // records of application data of the host's, of w.mu
	var both sync.WaitGroup
	both.Go(func() {
		defer plane.Close()
		w.pump(plane, host, func(kind byte) bool {
			if kind == applicationData {
				asked++
			}
			return true
		})
	})
	answered := 1 // the first of the host's is the end of its handshake
	w.pump(host, plane, func(kind byte) bool {
		if w.each == nil || kind != applicationData || asked <= answered {
			return true
		}
		answered = asked
		return w.each()
	})
	host.Close()
	both.Wait()
}

const applicationData = 23

// pump passes records on until one end is gone, or may says no.
func (w *wall) pump(to io.Writer, from io.Reader, may func(kind byte) bool) {
	for {
		record := make([]byte, 5, 5+1<<14+256)
		if _, err := io.ReadFull(from, record); err != nil {
			return
		}
		n := int(binary.BigEndian.Uint16(record[3:]))
		record = append(record, make([]byte, n)...)
		if _, err := io.ReadFull(from, record[5:]); err != nil {
			return
		}
		if !w.deliverOne(to, record, may) {
			return
		}
	}
}

func (w *wall) deliverOne(to io.Writer, record []byte, may func(kind byte) bool) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.passed++
	if !may(record[0]) {
		return false
	}
	at := w.fault != nil && w.passed == w.at
	if at && !w.deliver {
		w.fire()
		return false
	}
	_, err := to.Write(record)
	if at {
		w.fire()
	}
	return err == nil
}
