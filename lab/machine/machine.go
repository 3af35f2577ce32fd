// Package machine gives a test real machines: systemd as PID 1, a disk, an
// address of its own, reboots, and the plug that can be pulled.
//
// A test reads like a script:
//
//	func TestMain(m *testing.M) { machine.Main(m) }
//
//	func TestNodeComesBack(t *testing.T) {
//		lab := machine.Start(t)
//		alpha := lab.Boot("alpha")
//		alpha.Put("/usr/local/bin/mesh-host", 0o755, built)
//		alpha.Must("mesh-host", "install")
//		alpha.Reboot()
//		alpha.Must("systemctl", "is-active", "mesh-host")
//	}
//
// Methods that set the scene (Boot, Reboot, Must, Put) end the test when they
// fail; Run and Pipe return the error, because a failing command is often what
// the test is about.
//
// # How
//
// A machine is a systemd-nspawn container over an overlay of one prepared root
// (kept in the cache folder, see CacheDir), in its own network namespace with
// a cable into a bridge. All machines of a lab live inside the mount, PID and
// network namespaces of one keeper: this program executed again, as PID 1. It
// ends when its standard input does, which the kernel sees to however the test
// dies, and with PID 1 the kernel ends everything in its namespaces. Before,
// the keeper takes away the two things that no namespace holds: cgroups and
// the folder with the disks. Should the keeper itself be killed, the next
// Start sweeps those.
//
// # What it is not
//
// The kernel is shared: no modules, no clock of its own, and CutPower ends all
// processes at once but loses no page cache. No limits on memory or devices
// hold inside a machine. There is no way out: no default route, no resolver.
package machine

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/nox-mesh/nox-mesh/internal/durable"
)

// bootTime bounds a boot; half a second is usual where nothing else runs.
const bootTime = 2 * time.Minute

// A Machine is one machine of a lab. Its disk lasts as long as the lab.
type Machine struct {
	lab     *Lab
	name    string
	offline bool
	engine  bool
	address string // "" when offline
	dir     string // upper, work, root: the disk

	notify *net.UnixConn // where nspawn says that the machine is up
	ready  chan struct{} // one value for each boot that came up
	off    chan struct{} // closed when it is off; nil before the first boot
	ended  error         // how nspawn ended; read after off is closed
}

// An Option says how a machine differs from the usual one.
type Option func(*Machine)

// Offline gives a machine no network but its loopback.
func Offline(m *Machine) { m.offline = true }

// A name becomes a host name, a cgroup and, after "v", an interface (15 bytes).
var goodName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,12}[a-z0-9]$|^[a-z]$`)

// Boot makes a machine of that name, or switches the one there is on again
// with the disk it has, and returns when its systemd has started all there is
// to start. The options of the first time hold.
func (l *Lab) Boot(name string, options ...Option) *Machine {
	l.t.Helper()
	m, err := l.boot(name, options)
	if err != nil {
		l.t.Fatalf("cannot boot %q: %v", name, err)
	}
	return m
}

func (l *Lab) boot(name string, options []Option) (*Machine, error) {
	m := l.machines[name]
	if m == nil {
		var err error
		if m, err = l.assemble(name, options); err != nil {
			return nil, err
		}
		l.machines[name] = m
	}
	if m.IsOn() {
		return nil, fmt.Errorf("it is on")
	}
	if err := m.powerOn(); err != nil {
		return nil, err
	}
	return m, m.awaitReady()
}

// assemble makes the disk and the network of a new machine.
func (l *Lab) assemble(name string, options []Option) (*Machine, error) {
	if !goodName.MatchString(name) {
		return nil, fmt.Errorf("a name is at most 14 of a-z, 0-9 and -")
	}
	m := &Machine{lab: l, name: name, dir: filepath.Join(l.dir, name), ready: make(chan struct{}, 1)}
	for _, o := range options {
		o(m)
	}
	for _, d := range []string{"upper/etc", "work", "root"} {
		// "upper" becomes the machine's "/": its mode counts.
		if err := durable.MkdirAll(filepath.Join(m.dir, d), 0o755); err != nil {
			return nil, err
		}
	}
	// Without an id systemd-firstboot runs, and fails.
	id, err := machineID()
	if err != nil {
		return nil, err
	}
	for file, content := range map[string]string{"machine-id": id, "hostname": name} {
		if err := durable.WriteFile(filepath.Join(m.dir, "upper/etc", file), []byte(content+"\n"), 0o644); err != nil {
			return nil, err
		}
	}
	root := l.root
	if m.engine {
		if root, err = m.prepareEngine(); err != nil {
			return nil, err
		}
	}
	layers := fmt.Sprintf("lowerdir=%s,upperdir=%s/upper,workdir=%s/work", root, m.dir, m.dir)
	if _, err := l.do("", "mount", "-t", "overlay", "-o", layers, "nox-lab", filepath.Join(m.dir, "root")); err != nil {
		return nil, err
	}
	if err := m.connect(); err != nil {
		return nil, err
	}
	if m.notify, err = l.listenNotify(name); err != nil {
		return nil, err
	}
	l.wg.Go(m.passReady)
	return m, nil
}

// machineID returns 32 hexadecimal digits, as machine-id(5) wants them.
func machineID() (string, error) {
	b, err := os.ReadFile("/proc/sys/kernel/random/uuid")
	return strings.ReplaceAll(strings.TrimSpace(string(b)), "-", ""), err
}

// Name returns the name, which is also the host name.
func (m *Machine) Name() string { return m.name }

// IsOn reports whether the machine runs, or is about to after a reboot.
func (m *Machine) IsOn() bool {
	if m.off == nil {
		return false
	}
	select {
	case <-m.off:
		return false
	default:
		return true
	}
}

// powerOn starts nspawn and what watches over it.
func (m *Machine) powerOn() error {
	groups, err := makeCgroups(m.lab.name, m.name)
	if err != nil {
		return err
	}
	log, err := os.OpenFile(filepath.Join(m.dir, "log"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	select {
	case <-m.ready: // of a boot that was cut short
	default:
	}
	off := make(chan struct{})
	m.off = off
	m.lab.wg.Go(func() {
		defer log.Close()
		for {
			m.ended = m.nspawn(groups, log).Run()
			// nspawn(1) with --keep-unit ends with 133 when the machine asks
			// for a reboot, and leaves the boot to its caller.
			if exit, ok := m.ended.(*exec.ExitError); !ok || exit.ExitCode() != 133 {
				break
			}
		}
		close(off)
	})
	return nil
}

// nspawn is one boot of the machine. It joins a cgroup of its own in every
// hierarchy first: two machines in one would share their payload's.
func (m *Machine) nspawn(groups []string, log *os.File) *exec.Cmd {
	const join = `for g in $CGROUPS; do echo 0 >"$g/cgroup.procs"; done; unset CGROUPS; exec "$@"`
	args := []string{"sh", "-euc", join, "sh", "systemd-nspawn",
		"--directory=" + filepath.Join(m.dir, "root"), "--machine=" + m.name,
		"--register=no", "--keep-unit", "--network-namespace-path=/run/netns/" + m.name,
		"--link-journal=no", "--resolv-conf=off", "--timezone=off",
		"--notify-ready=yes", "--boot", "--console=pipe"}
	if m.engine {
		args = append(args, m.engineArgs()...)
	}
	cmd := m.lab.command(args...)
	cmd.Env = append(cmd.Env, "CGROUPS="+strings.Join(groups, " "), "NOTIFY_SOCKET="+notifyName(m.name),
		"SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1",
		// Without it /sys/class/net shows the interfaces of the lab.
		"SYSTEMD_NSPAWN_API_VFS_WRITABLE=network")
	cmd.Stdout, cmd.Stderr = log, log
	return cmd
}

// awaitReady returns when the boot under way has come up.
func (m *Machine) awaitReady() error {
	late := time.NewTimer(bootTime)
	defer late.Stop()
	select {
	case <-m.ready:
		return nil
	case <-m.off:
		return fmt.Errorf("it went off: %v: %s", m.ended, m.Log())
	case <-late.C:
		return fmt.Errorf("it is not up after %s: %s", bootTime, m.Log())
	case <-m.lab.t.Context().Done():
		return context.Cause(m.lab.t.Context())
	}
}

// awaitOff returns when the machine is off.
func (m *Machine) awaitOff() error {
	late := time.NewTimer(bootTime)
	defer late.Stop()
	select {
	case <-m.off:
		return nil
	case <-late.C:
		return fmt.Errorf("it is not off after %s: %s", bootTime, m.Log())
	}
}

// Reboot runs `systemctl reboot` and returns when the machine is up again.
func (m *Machine) Reboot() {
	m.lab.t.Helper()
	// The answer may be lost with the machine that gives it.
	_, _ = m.Run(m.lab.t.Context(), "systemctl", "reboot")
	m.AwaitBoot()
}

// AwaitBoot returns when the machine is up after a reboot that something else
// asked for.
func (m *Machine) AwaitBoot() {
	m.lab.t.Helper()
	if err := m.awaitReady(); err != nil {
		m.lab.t.Fatalf("cannot reboot %q: %v", m.name, err)
	}
}

// PowerOff runs `systemctl poweroff` and returns when the machine is off.
func (m *Machine) PowerOff() {
	m.lab.t.Helper()
	_, _ = m.Run(m.lab.t.Context(), "systemctl", "poweroff")
	if err := m.awaitOff(); err != nil {
		m.lab.t.Fatalf("cannot power %q off: %v", m.name, err)
	}
}

// CutPower kills every process of the machine in one instant. Boot switches it
// on again, on the disk as it was at that instant.
func (m *Machine) CutPower() {
	m.lab.t.Helper()
	err := killCgroup(m.lab.name, m.name)
	if err == nil {
		err = m.awaitOff()
	}
	if err == nil {
		err = removeCgroups(m.lab.name, m.name)
	}
	if err != nil {
		m.lab.t.Fatalf("cannot cut the power of %q: %v", m.name, err)
	}
}

// Log returns the end of what the machine printed to its console.
func (m *Machine) Log() string {
	f, err := os.Open(filepath.Join(m.dir, "log"))
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	const tail = 4 << 10
	if fi, err := f.Stat(); err == nil && fi.Size() > tail {
		_, _ = f.Seek(-tail, io.SeekEnd)
	}
	b, _ := io.ReadAll(io.LimitReader(f, tail))
	return string(b)
}

// ownGroup makes a command die whole: with its children, at once.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
}
