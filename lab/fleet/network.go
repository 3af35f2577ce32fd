package fleet

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
)

// Where the control plane is in the network: address and port. What comes from
// Here comes from the control plane's own machine.
const (
	Here    = "10.78.0.1"
	Address = Here + ":7443"
	// Here6 and Address6 are the same over IPv6.
	Here6    = "fd78::1"
	Address6 = "[fd78::1]:7443"
)

// inside is in the environment of a test that has its network.
const inside = "NOX_LAB_FLEET_NETWORK"

// Main runs the tests of a package in a network of their own, then what is to be
// done at the end, and ends the process. It needs root, or a kernel that gives an ordinary user a namespace;
// where it has neither the tests are skipped one by one (Require).
func Main(m *testing.M, last ...func()) {
	switch os.Getenv(inside) {
	case "":
		code, err := again()
		if err == nil {
			os.Exit(code)
		}
		os.Setenv(inside, "cannot have a network of its own: "+err.Error())
	case "made":
		if err := furnish(); err != nil {
			os.Setenv(inside, "cannot set up a network: "+err.Error())
		}
	}
	code := m.Run()
	for _, f := range last {
		f()
	}
	os.Exit(code)
}

// Require skips a test that has no network, with the reason; with
// NOX_REQUIRE_MACHINE=1 it fails.
func Require(t testing.TB) {
	t.Helper()
	switch why := os.Getenv(inside); {
	case why == "made":
	case os.Getenv("NOX_REQUIRE_MACHINE") == "1":
		t.Fatal(why)
	default:
		t.Skip(why)
	}
}

// again runs this program once more, in a network namespace.
func again() (int, error) {
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Env = append(os.Environ(), inside+"=made")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	if os.Geteuid() != 0 {
		one := func(id int) []syscall.SysProcIDMap { return []syscall.SysProcIDMap{{HostID: id, Size: 1}} }
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings, cmd.SysProcAttr.GidMappings = one(os.Geteuid()), one(os.Getegid())
	}
	passed := make(chan os.Signal, 1)
	signal.Notify(passed, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT)
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	go func() {
		for s := range passed {
			_ = cmd.Process.Signal(s)
		}
	}()
	err := cmd.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return max(exit.ExitCode(), 1), nil
	}
	return 0, err
}

// The addresses of the network, besides 127.0.0.1 and ::1. What is below the local
// routes may be bound by anybody without being an address of the machine
// (ip-route(8), type local).
const (
	four = " addr add " + Here + "/32 dev lo\n route add local 10.80.0.0/12 dev lo\n"
	six  = " addr add " + Here6 + "/128 dev lo nodad\n"
)

func furnish() error { return ip("link set lo up\n" + four + six) }

// WithoutIPv4 takes what is of IPv4 from the network, but for the loopback that
// every machine has, until WithIPv4.
func WithoutIPv4() error { return ip(strings.ReplaceAll(four, " add ", " del ")) }

// WithIPv4 gives it back.
func WithIPv4() error { return ip(four) }

func ip(batch string) error {
	cmd := exec.Command("ip", "-batch", "-")
	cmd.Stdin = strings.NewReader(batch)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("ip: %w: %s", err, bytes.TrimSpace(out))
	}
	return nil
}

// Source is the address of the machine of number i.
func Source(i int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, byte(80 + i>>16), byte(i >> 8), byte(i)})
}
