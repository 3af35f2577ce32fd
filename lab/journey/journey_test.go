package journey

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/nox-mesh/nox-mesh/internal/cli"
	"github.com/nox-mesh/nox-mesh/internal/clock"
	"github.com/nox-mesh/nox-mesh/internal/layout"
	"github.com/nox-mesh/nox-mesh/lab/firstnode"
)

func TestMain(m *testing.M) { testscript.Main(m, nil) }

// TestScripts makes one release and runs every script with it. In a script:
//
//	$DIST $KEYS      the release and its keys; $PASS the keys' passphrase;
//	                 $BUNDLE its bundle, $ARCH its architecture
//	machine NAME     installs the host in $WORK/NAME and starts it
//	halt NAME        ends everything of that machine; start NAME starts its host
//	                 (stop is testscript's own: it ends a script, as passed)
//	host NAME ...    mesh-host of that machine; controller NAME ... likewise
//	release ...      mesh-release
//	until PATTERN COMMAND...  runs COMMAND until its output matches, for 90 s
//	flip FILE N      flips bit 0 of byte N (negative: from the end)
//	cut FILE N       keeps the first N bytes
//	remember NAME    remembers the tree of a machine; untouched NAME compares
//	let VAR FILE     sets VAR to what FILE holds
//	pid NAME PROCESS VAR   sets VAR to the process id of a process
func TestScripts(t *testing.T) {
	// Run by root, the control plane is another user, who must come this far.
	top := t.TempDir()
	work := filepath.Join(top, "work")
	for _, err := range []error{os.Chmod(filepath.Dir(top), 0o755), os.Chmod(top, 0o755), os.Mkdir(work, 0o755)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	release := &firstnode.Node{Dir: filepath.Join(top, "release"), Std: cli.Stdio{Out: io.Discard, Err: os.Stderr}, Clock: clock.System}
	dist, err := release.Release(t.Context())
	if err != nil {
		t.Fatalf("cannot make a release: %v", err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script", WorkdirRoot: work, RequireExplicitExec: true, RequireUniqueNames: true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("DIST", dist)
			env.Setenv("KEYS", filepath.Join(release.Dir, "keys"))
			arch := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
			env.Setenv("ARCH", arch)
			env.Setenv("PASS", filepath.Join(release.Dir, "passphrase"))
			env.Setenv("PATH", filepath.Join(release.Dir, "bin")+":"+env.Getenv("PATH"))
			bundles, err := filepath.Glob(filepath.Join(dist, "*.bundle.tar"))
			if err != nil || len(bundles) != 1 {
				return fmt.Errorf("the release has %d bundles (%v)", len(bundles), err)
			}
			env.Setenv("BUNDLE", bundles[0])
			work := env.WorkDir
			env.Defer(func() {
				if err := firstnode.End(work); err != nil {
					t.Errorf("left running: %v", err)
				}
			})
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"machine": machine, "start": start, "halt": halt, "host": host, "controller": controller, "release": publisher, "until": until,
			"flip": flip, "cut": cut, "remember": remember, "untouched": untouched, "pid": pid, "let": let,
		},
	})
}

func at(ts *testscript.TestScript, name string) layout.Layout {
	return layout.Layout{Root: ts.MkAbs(name)}
}

// machine lays the host down in a folder, with a control plane's configuration
// for the day it gets one, and starts it.
func machine(ts *testscript.TestScript, _ bool, args []string) {
	name := args[0]
	l := at(ts, name)
	floors, _ := filepath.Glob(filepath.Join(ts.Getenv("DIST"), "nox-mesh-host-*.tar.gz"))
	src := ts.MkAbs(name + "-tarball")
	ts.Check(os.Mkdir(src, 0o755))
	ts.Check(ts.Exec("tar", "-xzf", floors[0], "-C", src))
	found, _ := filepath.Glob(filepath.Join(src, "*", "mesh-host"))
	ts.Check(ts.Exec(found[0], "install", "--root", l.Root, "--quiet"))
	free, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	config := fmt.Sprintf("listen = [%q]\n", free.Addr().String())
	free.Close()
	ts.Check(os.WriteFile(l.ControllerConfig(), []byte(config), 0o644))
	start(ts, false, args)
}

// start starts the host, as a service manager would, and waits until it answers.
func start(ts *testscript.TestScript, _ bool, args []string) {
	l := at(ts, args[0])
	log, err := os.OpenFile(l.Root+".log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	ts.Check(err)
	defer log.Close()
	cmd := exec.Command(l.HostBinary(layout.FloorPrefix), "run", "--root", l.Root)
	cmd.Stdout, cmd.Stderr = log, log
	ts.Check(cmd.Start())
	go cmd.Wait() //nolint:errcheck // it is ended by End
	until(ts, false, []string{`"running": true`, "host", args[0], "status", "--json"})
}

func halt(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(firstnode.End(at(ts, args[0]).Root))
}

func hostCommand(ts *testscript.TestScript, args []string) []string {
	l := at(ts, args[0])
	return append([]string{l.HostBinary(layout.FloorPrefix), "--root", l.Root}, args[1:]...)
}

func controllerCommand(ts *testscript.TestScript, args []string) []string {
	l := at(ts, args[0])
	return append([]string{l.Path("/usr/local/bin/mesh-controller"), "--root", l.Root}, args[1:]...)
}

func host(ts *testscript.TestScript, neg bool, args []string) {
	run(ts, neg, hostCommand(ts, args))
}

func controller(ts *testscript.TestScript, neg bool, args []string) {
	run(ts, neg, controllerCommand(ts, args))
}

func publisher(ts *testscript.TestScript, neg bool, args []string) {
	run(ts, neg, append([]string{"mesh-release"}, args...))
}

// run runs a command; with "!" it must be refused, which is exit 3 and one
// line on standard error.
func run(ts *testscript.TestScript, neg bool, command []string) {
	err := ts.Exec(command[0], command[1:]...)
	if !neg {
		ts.Check(err)
		return
	}
	var exit *exec.ExitError
	if err == nil {
		ts.Fatalf("%v was not refused", command)
	}
	if !asExit(err, &exit) || exit.ExitCode() != 3 {
		ts.Fatalf("%v: %v, want exit status 3", command, err)
	}
	if lines := strings.Count(ts.ReadFile("stderr"), "\n"); lines != 1 {
		ts.Fatalf("%d lines on standard error, want one", lines)
	}
}

func asExit(err error, to **exec.ExitError) bool {
	e, ok := err.(*exec.ExitError)
	*to = e
	return ok
}

// until runs a command again and again; what it waits for happens in another
// process, whose only sign is what it answers.
func until(ts *testscript.TestScript, neg bool, args []string) {
	want := regexp.MustCompile("(?s)" + args[0])
	command := args[1:]
	switch command[0] {
	case "host":
		command = hostCommand(ts, command[1:])
	case "controller":
		command = controllerCommand(ts, command[1:])
	}
	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	var out []byte
	var err error
	for {
		cmd := exec.CommandContext(ctx, command[0], command[1:]...)
		cmd.Dir = ts.MkAbs(".")
		cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGQUIT) }
		out, err = cmd.CombinedOutput()
		if want.Match(out) != neg {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			ts.Fatalf("after 90 s %v still prints\n%s%v", command, out, err)
		}
	}
}

func flip(ts *testscript.TestScript, _ bool, args []string) {
	b := []byte(ts.ReadFile(args[0]))
	b[offset(ts, args[1], len(b))] ^= 1
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), b, 0o644))
}

func cut(ts *testscript.TestScript, _ bool, args []string) {
	b := []byte(ts.ReadFile(args[0]))
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), b[:offset(ts, args[1], len(b))], 0o644))
}

func offset(ts *testscript.TestScript, s string, size int) int {
	n, err := strconv.Atoi(s)
	ts.Check(err)
	if n < 0 {
		n += size
	}
	return n
}

// tree says of every file below a machine's root what it is, what it holds and
// when it was changed: a write of the same bytes is a touch as well. What a
// running host keeps for itself while it serves (its socket) is the same
// before and after.
func tree(ts *testscript.TestScript, root string) []byte {
	var out bytes.Buffer
	ts.Check(filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fi, err := d.Info()
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, p)
		fmt.Fprintf(&out, "%s %v %d", rel, fi.Mode(), fi.Size())
		if fi.Mode().IsRegular() {
			b, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			fmt.Fprintf(&out, " %x %d", sha256.Sum256(b), fi.ModTime().UnixNano())
		}
		fmt.Fprintln(&out)
		return nil
	}))
	return out.Bytes()
}

func remember(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(os.WriteFile(ts.MkAbs(args[0]+".tree"), tree(ts, at(ts, args[0]).Root), 0o600))
}

func untouched(ts *testscript.TestScript, _ bool, args []string) {
	before, now := strings.Split(ts.ReadFile(args[0]+".tree"), "\n"), strings.Split(string(tree(ts, at(ts, args[0]).Root)), "\n")
	was := map[string]bool{}
	for _, l := range before {
		was[l] = true
	}
	for _, l := range now {
		if !was[l] {
			ts.Fatalf("touched: %s", l)
		}
	}
	if len(before) != len(now) {
		ts.Fatalf("%d files became %d", len(before), len(now))
	}
}

func let(ts *testscript.TestScript, _ bool, args []string) {
	ts.Setenv(args[0], strings.TrimSpace(ts.ReadFile(args[1])))
}

// pid finds the one process that a machine's shim keeps up: the child of the
// shim, by the kernel's word.
func pid(ts *testscript.TestScript, _ bool, args []string) {
	root, name, found := at(ts, args[0]).Root, args[1], 0
	stats, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range stats {
		b, err := os.ReadFile(f)
		if err != nil {
			continue
		}
		argv := strings.Split(strings.TrimSuffix(string(b), "\x00"), "\x00")
		if len(argv) < 5 || argv[1] != "shim" || argv[3] != root || argv[len(argv)-1] != name {
			continue
		}
		// Each thread knows the children that it made.
		threads, _ := filepath.Glob(filepath.Join(filepath.Dir(f), "task/*/children"))
		for _, thread := range threads {
			children, _ := os.ReadFile(thread)
			for _, c := range strings.Fields(string(children)) {
				ts.Setenv(args[2], c)
				found++
			}
		}
	}
	if found != 1 {
		ts.Fatalf("%d processes of %q run on %s", found, name, args[0])
	}
}
