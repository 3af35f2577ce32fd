//go:build machine

package machine

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestMain(m *testing.M) { Main(m) }

func TestMachinesReachEachOtherAndTheTest(t *testing.T) {
	lab := Start(t)
	alpha, beta := lab.Boot("alpha"), lab.Boot("beta")
	for _, m := range []*Machine{alpha, beta} {
		if got := m.Must("systemctl", "is-system-running"); got != "running" {
			t.Errorf("%s is %s: %s", m.Name(), got, m.Must("systemctl", "--failed", "--no-legend"))
		}
		if got := m.Must("cat", "/proc/sys/kernel/hostname"); got != m.Name() {
			t.Errorf("%s calls itself %q", m.Name(), got)
		}
		if got := m.Must("cat", "/proc/1/comm"); got != "systemd" {
			t.Errorf("PID 1 of %s is %q", m.Name(), got)
		}
	}

	listener := lab.Listen(80)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "hello %s", strings.Split(r.RemoteAddr, ":")[0])
	})}
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(listener) }()
	defer func() { server.Close(); <-done }()
	if got := alpha.Must("curl", "-fsS", "http://"+BridgeAddress+"/"); got != "hello "+alpha.Address() {
		t.Errorf("the test answered alpha %q", got)
	}

	beta.WriteFile("/srv/hello/answer", 0o644, "from beta\n")
	// A socket unit is a file server that every machine has.
	beta.WriteFile("/run/systemd/system/hello.socket", 0o644, "[Socket]\nListenStream=7\nAccept=yes\n")
	beta.WriteFile("/run/systemd/system/hello@.service", 0o644, "[Service]\nExecStart=cat /srv/hello/answer\nStandardOutput=socket\n")
	beta.Must("systemctl", "daemon-reload")
	beta.Must("systemctl", "start", "hello.socket")
	ask := []string{"curl", "-fsS", "--max-time", "5", "telnet://" + beta.Address() + ":7"}
	if got := alpha.Must(ask...); got != "from beta" {
		t.Errorf("beta answered alpha %q", got)
	}
	beta.Unplug()
	if got, err := alpha.Run(t.Context(), "curl", "-fsS", "--connect-timeout", "1", "telnet://"+beta.Address()+":7"); err == nil {
		t.Errorf("beta answered without a cable: %q", got)
	}
	beta.Plug()
	if got := alpha.Must(ask...); got != "from beta" {
		t.Errorf("beta answered with its cable back %q", got)
	}
}

func TestRebootKeepsTheDiskAndNothingElse(t *testing.T) {
	m := Start(t).Boot("alpha")
	boot, address := m.Must("cat", "/proc/sys/kernel/random/boot_id"), m.Address()
	m.WriteFile("/root/kept", 0o600, "kept")
	m.WriteFile("/run/lost", 0o600, "lost")
	m.Reboot()
	if m.Must("cat", "/proc/sys/kernel/random/boot_id") == boot {
		t.Error("the boot id is the same: it was no reboot")
	}
	if got := m.ReadFile("/root/kept"); got != "kept" {
		t.Errorf("/root/kept is %q", got)
	}
	if _, err := m.Run(t.Context(), "test", "-e", "/run/lost"); ExitCode(err) != 1 {
		t.Errorf("/run/lost is there after a reboot: %v", err)
	}
	if got := m.Must("ip", "-4", "-br", "addr", "show", "eth0"); !strings.Contains(got, address+"/24") {
		t.Errorf("its address was %s, and is now %s", address, got)
	}
}

func TestPowerOffThenBootIsTheSameDisk(t *testing.T) {
	lab := Start(t)
	m := lab.Boot("alpha")
	m.WriteFile("/root/kept", 0o600, "kept")
	m.PowerOff()
	if m.IsOn() {
		t.Fatal("it is on")
	}
	if _, err := m.Run(t.Context(), "true"); err == nil {
		t.Error("a command ran in a machine that is off")
	}
	if again := lab.Boot("alpha"); again != m || m.ReadFile("/root/kept") != "kept" {
		t.Error("it is another machine")
	}
}

func TestCutPowerKillsEverythingAtOnce(t *testing.T) {
	lab := Start(t)
	m := lab.Boot("alpha")
	m.WriteFile("/root/kept", 0o600, "kept")
	// A unit that would write on an orderly stop, and a command from outside.
	m.Must("systemd-run", "--quiet", "--property=ExecStop=touch /root/stopped", "sleep", "infinity")
	outside := make(chan error, 1)
	go func() {
		_, err := m.Run(context.Background(), "sh", "-c", "touch /run/began; exec sleep infinity")
		outside <- err
	}()
	waitFor(t, func() bool { _, err := m.Run(t.Context(), "test", "-e", "/run/began"); return err == nil }, "the command")
	m.CutPower()
	if err := <-outside; err == nil {
		t.Error("a command that ran there ended well")
	}
	lab.Boot("alpha")
	if got := m.ReadFile("/root/kept"); got != "kept" {
		t.Errorf("/root/kept is %q", got)
	}
	if _, err := m.Run(t.Context(), "test", "-e", "/root/stopped"); ExitCode(err) != 1 {
		t.Errorf("the unit was stopped in order: %v", err)
	}
}

func TestOfflineMachineHasOnlyLoopback(t *testing.T) {
	lab := Start(t)
	m := lab.Boot("alpha", Offline)
	if got := strings.Fields(m.Must("ls", "/sys/class/net")); len(got) != 1 || got[0] != "lo" {
		t.Errorf("its interfaces are %v", got)
	}
	if m.Address() != "" {
		t.Errorf("its address is %q", m.Address())
	}
	if _, err := m.Run(t.Context(), "curl", "-fsS", "--connect-timeout", "1", "http://"+BridgeAddress+"/"); ExitCode(err) != 7 {
		t.Errorf("curl did not say that it could not connect: %v", err)
	}
	if got := m.Must("systemctl", "is-system-running"); got != "running" {
		t.Errorf("it is %s", got)
	}
}

func TestRunTellsHowACommandEnded(t *testing.T) {
	m := Start(t).Boot("alpha")
	out, err := m.Run(t.Context(), "sh", "-c", "echo out; echo why >&2; exit 7")
	if out != "out" || ExitCode(err) != 7 || !strings.Contains(err.Error(), "why") {
		t.Errorf("out %q, exit %d, %v", out, ExitCode(err), err)
	}
	if out, err := m.Pipe(t.Context(), strings.NewReader("in"), "cat"); out != "in" || err != nil {
		t.Errorf("out %q, %v", out, err)
	}
	out, err = m.RunInUnit(t.Context(), "sh", "-c", "cat /proc/self/cgroup; exit 3")
	if !strings.Contains(out, "/system.slice/run-") || ExitCode(err) != 3 {
		t.Errorf("out %q, %v", out, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := m.Run(ctx, "sleep", "4711"); err == nil {
		t.Error("a cancelled command ended well")
	}
	if out, err := m.Run(t.Context(), "pgrep", "-f", "sleep 4711"); err == nil {
		t.Errorf("a cancelled command runs on as %s", out)
	}
}

// TestKilledTestLeavesNothing runs itself as a victim in a process of its own,
// and kills that while two of its machines run: alone, and with its keeper.
func TestKilledTestLeavesNothing(t *testing.T) {
	Require(t)
	if os.Getenv("NOX_LAB_VICTIM") == "1" {
		victim(t)
	}
	for _, who := range []string{"test", "keeper"} {
		t.Run(who, func(t *testing.T) {
			cmd := exec.Command("/proc/self/exe", "-test.run=^TestKilledTestLeavesNothing$", "-test.v")
			cmd.Env = append(os.Environ(), "NOX_LAB_VICTIM=1")
			cmd.Stderr = os.Stderr
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			var lab string
			var keeper int
			for s := bufio.NewScanner(out); keeper == 0 && s.Scan(); {
				_, _ = fmt.Sscanf(s.Text(), "victim is up: %s with keeper %d", &lab, &keeper)
			}
			if keeper == 0 {
				t.Fatalf("the victim did not come up: %v", cmd.Wait())
			}
			pids := append(members(t, lab), keeper)
			if during := traces(t, lab, pids); len(pids) < 10 || len(during) < len(pids)+3 {
				t.Errorf("this test does not see what there is: %v", during)
			}
			if who == "keeper" {
				if err := syscall.Kill(keeper, syscall.SIGKILL); err != nil {
					t.Fatal(err)
				}
			}
			_ = cmd.Process.Kill()
			_, _ = io.Copy(io.Discard, out)
			_ = cmd.Wait()
			if who == "keeper" {
				// Nobody is left to clear up: the next lab does.
				waitFor(t, func() bool {
					_, err := os.Stat(fmt.Sprintf("/proc/%d", keeper))
					return err != nil
				}, "the end of the keeper")
				other, err := prepare()
				if err != nil {
					t.Fatal(err)
				}
				other.lock.Close()
				if err := os.RemoveAll(other.dir); err != nil {
					t.Fatal(err)
				}
			}
			var left []string
			waitFor(t, func() bool { left = traces(t, lab, pids); return len(left) == 0 }, &left)
		})
	}
}

func victim(t *testing.T) {
	lab := Start(t)
	lab.Boot("alpha")
	lab.Boot("beta")
	fmt.Printf("victim is up: %s with keeper %d\n", lab.name, lab.keeper.Process.Pid)
	<-t.Context().Done() // never: it is killed
}

// members returns every process in a cgroup of the lab.
func members(t *testing.T, lab string) (pids []int) {
	t.Helper()
	all, _ := filepath.Glob("/proc/[0-9]*/cgroup")
	for _, path := range all {
		b, _ := os.ReadFile(path)
		if strings.Contains(string(b), "/"+lab+"/") {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			if err != nil {
				t.Fatal(err)
			}
			pids = append(pids, pid)
		}
	}
	return pids
}

// traces is all that a lab with machines alpha and beta could leave: those of
// the processes that live, mounts, links, names of networks, cgroups, disks.
func traces(t *testing.T, lab string, pids []int) (found []string) {
	t.Helper()
	for _, pid := range pids {
		if comm, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)); err == nil {
			found = append(found, fmt.Sprintf("process %d %s", pid, comm))
		}
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, lab) {
			found = append(found, "mount "+line)
		}
	}
	all, _, err := hierarchies()
	if err != nil {
		t.Fatal(err)
	}
	cache, err := CacheDir()
	if err != nil {
		t.Fatal(err)
	}
	paths := []string{filepath.Join(cache, "labs", lab), "/sys/class/net/br-lab"}
	for _, m := range []string{"alpha", "beta"} {
		paths = append(paths, "/sys/class/net/v"+m, "/run/netns/"+m, "/run/systemd/nspawn/propagate/"+m)
	}
	for _, h := range all {
		paths = append(paths, filepath.Join(h, lab))
	}
	for _, p := range paths {
		if _, err := os.Lstat(p); err == nil {
			found = append(found, p)
		}
	}
	return found
}

// waitFor waits for what gives no notice; what says more when it does not come.
func waitFor(t *testing.T, is func() bool, what any) {
	t.Helper()
	end := time.Now().Add(time.Minute)
	for !is() {
		if time.Now().After(end) {
			t.Fatalf("it did not happen in a minute: %v", what)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func TestEngineAnswersInAMachine(t *testing.T) {
	m := Start(t).Boot("alpha", Engine)
	if got := m.Must("systemctl", "is-system-running"); got != "running" {
		t.Errorf("it is %s: %s", got, m.Must("systemctl", "--failed", "--no-legend"))
	}
	if got := m.Must("curl", "-fsS", "--unix-socket", EngineSocket, "http://engine/_ping"); got != "OK" {
		t.Errorf("the engine answers %q", got)
	}
	// There is no registry: an image is made of one static program.
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "hello.go"), []byte("package main\n\nfunc main() { println(\"hello\") }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	build := exec.Command("go", "build", "-o", filepath.Join(dir, "hello"), filepath.Join(dir, "hello.go"))
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	m.Put("/root/image/hello", 0o755, filepath.Join(dir, "hello"))
	m.Must("sh", "-euc", "tar -C /root/image -cf - hello | podman import - example.test/hello:1")
	if got := m.Must("sh", "-c", "podman run --rm --network=host example.test/hello:1 /hello 2>&1"); got != "hello" {
		t.Errorf("the container said %q", got)
	}
}
