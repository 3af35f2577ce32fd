package machine

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// The lab's network is a namespace of its own, so every lab has the same.
const (
	subnet = "10.78.0."
	// BridgeAddress is the address of the test itself on the lab's network:
	// what Listen serves is reached there.
	BridgeAddress = subnet + "1"
)

func (l *Lab) makeBridge() error {
	_, err := l.do(`link set lo up
link add br-lab type bridge
addr add `+BridgeAddress+`/24 dev br-lab
link set br-lab up
`, "ip", "-batch", "-")
	return err
}

// connect makes the machine's network namespace and lays its cable.
func (m *Machine) connect() error {
	if _, err := m.lab.do("", "ip", "netns", "add", m.name); err != nil {
		return err
	}
	inside := "link set lo up\n"
	if !m.offline {
		m.lab.lastHost++
		m.address = fmt.Sprint(subnet, m.lab.lastHost)
		outside := fmt.Sprintf("link add v%s type veth peer name eth0 netns %s\nlink set v%s master br-lab up\n", m.name, m.name, m.name)
		if _, err := m.lab.do(outside, "ip", "-batch", "-"); err != nil {
			return err
		}
		inside += fmt.Sprintf("addr add %s/24 dev eth0\nlink set eth0 up\n", m.address)
	}
	_, err := m.lab.do(inside, "ip", "-n", m.name, "-batch", "-")
	return err
}

// Address returns the machine's address, "" for an offline one. It stays the
// same over reboots.
func (m *Machine) Address() string { return m.address }

// Unplug pulls the machine's network cable; Plug puts it back.
func (m *Machine) Unplug() { m.lab.t.Helper(); m.cable("down") }

// Plug puts the cable back that Unplug pulled.
func (m *Machine) Plug() { m.lab.t.Helper(); m.cable("up") }

func (m *Machine) cable(state string) {
	m.lab.t.Helper()
	if _, err := m.lab.do("", "ip", "link", "set", "v"+m.name, state); err != nil {
		m.lab.t.Fatalf("cannot set the cable of %q %s: %v", m.name, state, err)
	}
}

// Listen opens a TCP port of the test on the lab's network, so that a test can
// serve its machines; the listener's Addr says where.
func (l *Lab) Listen(port int) net.Listener {
	l.t.Helper()
	var listener net.Listener
	err := l.inNetwork(func() (err error) {
		listener, err = net.Listen("tcp4", fmt.Sprintf("%s:%d", BridgeAddress, port))
		return err
	})
	if err != nil {
		l.t.Fatalf("cannot listen on the lab's network: %v", err)
	}
	l.t.Cleanup(func() { listener.Close() })
	return listener
}

// inNetwork calls f on a thread that is in the lab's network: a socket belongs
// for ever to the network it was made in, whoever uses it.
func (l *Lab) inNetwork(f func() error) error {
	done := make(chan error)
	go func() {
		// Never unlocked: the runtime ends the thread with the goroutine.
		runtime.LockOSThread()
		done <- func() error {
			ns, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", l.keeper.Process.Pid))
			if err != nil {
				return err
			}
			defer ns.Close()
			if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
				return fmt.Errorf("cannot enter the lab's network: %w", err)
			}
			return f()
		}()
	}()
	return <-done
}

// notifyName is an abstract socket, unix(7): it is in the lab's network and
// leaves no file.
func notifyName(machine string) string { return "@nox-lab-" + machine }

// listenNotify opens the socket on which nspawn passes on the READY=1 of a
// machine's systemd, sd_notify(3): it says so when all jobs of the boot are done.
func (l *Lab) listenNotify(machine string) (conn *net.UnixConn, err error) {
	err = l.inNetwork(func() (err error) {
		conn, err = net.ListenUnixgram("unixgram", &net.UnixAddr{Name: notifyName(machine), Net: "unixgram"})
		return err
	})
	return conn, err
}

// passReady puts a value into m.ready for each boot that comes up, until the
// socket closes.
func (m *Machine) passReady() {
	buf := make([]byte, 4<<10)
	for {
		n, err := m.notify.Read(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		for line := range bytes.Lines(buf[:n]) {
			if string(bytes.TrimSpace(line)) == "READY=1" {
				select {
				case m.ready <- struct{}{}:
				default:
				}
			}
		}
	}
}
