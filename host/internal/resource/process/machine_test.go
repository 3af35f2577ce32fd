//go:build machine

package process

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/nox-mesh/nox-mesh/host/internal/resource"
	"github.com/nox-mesh/nox-mesh/host/internal/supervise"
	"github.com/nox-mesh/nox-mesh/internal/layout"
)

// machine gives the kind on this machine itself, with systemd, and a process
// that lives. It needs a machine of its own.
func machine(t *testing.T) (*Kind, resource.Want) {
	skip := t.Skip
	if os.Getenv("NOX_REQUIRE_MACHINE") == "1" {
		skip = t.Fatal
	}
	l := layout.Layout{}
	s, reason := Choose(l)
	if _, ok := s.(systemd); !ok {
		skip("systemd is not PID 1: " + reason)
	}
	if _, err := os.Stat(l.State()); err == nil {
		skip("a host is installed here: " + l.State())
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(l.State()); err != nil {
			t.Error(err)
		}
	})
	copyProgram(t, l.Launcher())
	program := filepath.Join(t.TempDir(), "child")
	copyProgram(t, program)
	k := newKind(l, s)
	want := wish("live")
	want.Resource.Process.Name = "nox-test"
	want.Resource.Process.Command[0] = program
	want.Resource.Process.Env = map[string]string{"NOX_ROOT": filepath.Dir(program)}
	return k, want
}

func copyProgram(t *testing.T, to string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		t.Fatal(err)
	}
	from, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(f, from); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestSystemdConforms(t *testing.T) {
	k, want := machine(t)
	conform(t, k.layout, k.sup, want.Resource.Process.Name, define(t, k, want))
}

func TestR02SystemdKeepsTheShimUp(t *testing.T) {
	k, want := machine(t)
	name := want.Resource.Process.Name
	record := resource.Record{Key: want.Resource.Key()}
	t.Cleanup(func() {
		if _, _, err := k.Remove(context.Background(), record); err != nil {
			t.Error(err)
		}
		if p, err := k.sup.Look(name); err != nil || p.Exists {
			t.Errorf("after Remove there is %+v, %v", p, err)
		}
	})
	check := func() resource.State {
		t.Helper()
		st, err := k.Check(t.Context(), want, &record)
		if err != nil {
			t.Fatal(err)
		}
		return st
	}
	if err := k.Apply(t.Context(), want, nil, check()); err != nil {
		t.Fatal(err)
	}
	if st := check(); !st.Same || st.Failing != "" {
		t.Fatalf("%+v", st)
	}
	first, err := supervise.ReadState(k.dir(name))
	if err != nil {
		t.Fatal(err)
	}
	cgroup, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(first.Child.PID), "cgroup"))
	if err != nil || !strings.Contains(string(cgroup), unitName(name)) {
		t.Errorf("the process is in the cgroup %q, %v", cgroup, err)
	}

	// Somebody kills the shim. systemd ends what it left and starts another,
	// without the host.
	if err := syscall.Kill(first.Shim.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	err = watch(t.Context(), k.dir(name), func() (bool, error) {
		s, err := supervise.ReadState(k.dir(name))
		return err == nil && s.Shim.PID != first.Shim.PID && s.Phase == supervise.Running, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if st := check(); !st.Same {
		t.Errorf("%+v", st)
	}
	if h, err := supervise.Find(*first.Child); h != nil || err != nil {
		t.Errorf("the first process is still there (%v)", err)
	}
}

func TestR03SystemdRollsBack(t *testing.T) {
	k, want := machine(t)
	program := filepath.Join(t.TempDir(), "program")
	want.Resource.Process.Command, want.Resource.Process.Rollback = []string{program}, true
	k.adjust = quick(k.layout, k.sup).adjust
	t.Cleanup(func() { _, _, _ = k.Remove(context.Background(), resource.Record{Key: want.Resource.Key()}) })
	rollsBack(t, k, want, program)
}
