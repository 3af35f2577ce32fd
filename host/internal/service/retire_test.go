package service

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/host/internal/apply"
	"github.com/nox-mesh/nox-mesh/host/internal/resource"
	"github.com/nox-mesh/nox-mesh/host/internal/store"
	"github.com/nox-mesh/nox-mesh/host/link"
	"github.com/nox-mesh/nox-mesh/internal/clock"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/internal/layout"
)

// serving is a service as `run` opens it, without its socket.
func serving(t *testing.T, cfg Config) *Service {
	t.Helper()
	s, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	s.served = true
	s.start(beat{})
	s.hold()
	t.Cleanup(func() { s.Close() })
	return s
}

func isThere(t *testing.T, path string) bool {
	t.Helper()
	_, err := os.Lstat(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return err == nil
}

// nobody is an address at which nobody answers.
func nobody(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// declaredByMesh puts a declaration of the mesh in force and applies it.
func declaredByMesh(t *testing.T, s *Service, document []byte) {
	t.Helper()
	if err := toldByMesh(s, document); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Pass(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func toldByMesh(s *Service, document []byte) error {
	return linkHandler{s}.take(s.ctx, link.DeclarationMessage{Mesh: meshID, Epoch: 1, Generation: 1, Document: document})
}

// TestANodeRetires under a control plane that knows nothing of it: it is told the
// old declaration at each connection, also while the node leaves.
func TestANodeRetires(t *testing.T) {
	cfg, i := machine(t), newIssuer(t)
	document := page("web", "1")
	p := newPlane(t, i, document)
	enrolled(t, cfg, i, p.Listener.Addr().String())
	s := serving(t, cfg)
	file := cfg.Layout.Path("/srv/page")
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	if !s.await(ctx, func() bool { return isThere(t, file) }) {
		t.Fatal("the mesh's declaration was not applied")
	}
	dry, err := s.Retire(ctx, RetireRequest{DryRun: true})
	if err != nil || dry.Mesh != meshID || dry.Node != "web" || len(dry.Steps) != 1 || dry.Steps[0].Action != apply.Remove || !isThere(t, file) {
		t.Errorf("%+v, %v", dry, err)
	}
	if st, err := s.Status(ctx); err != nil || st.Mesh != meshID || len(st.Warnings) != 0 {
		t.Errorf("after a dry run: %+v, %v", st, err)
	}
	got, err := s.Retire(ctx, RetireRequest{})
	if err != nil || !got.Told || !got.Forgotten || len(got.Left) != 0 || len(got.Resources) != 1 || got.Resources[0].Outcome != declaration.Removed {
		t.Fatalf("%+v, %v", got, err)
	}
	if isThere(t, file) || isThere(t, cfg.Layout.HostIdentity()) {
		t.Error("the page or the identity is there")
	}
	heard := p.heard()
	last := heard[len(heard)-1]
	if last.Source != "retire" || last.Mesh != meshID || !strings.Contains(last.Trigger, "retire") {
		t.Errorf("the control plane heard last: %+v", last)
	}
	if st, err := s.Status(ctx); err != nil || st.State != StateHosted || st.Mesh != "" || st.Owned != 0 || len(st.Warnings) != 0 {
		t.Errorf("%+v, %v", st, err)
	}
	// Nothing is left to do, and it is a machine like any other.
	if got, err := s.Retire(ctx, RetireRequest{}); err != nil || !got.Forgotten || got.Mesh != "" || len(got.Resources) != 0 {
		t.Errorf("a second time: %+v, %v", got, err)
	}
	if _, err := s.Apply(ctx, page("own", "2")); err != nil || !isThere(t, file) {
		t.Error(err)
	}
}

// TestI10ANodeRetiresWithTheControlPlaneGoneForEver: by the service and without one,
// revoked or not, with an identity that cannot be read.
func TestI10ANodeRetiresWithTheControlPlaneGoneForEver(t *testing.T) {
	for what, c := range map[string]struct {
		served bool
		spoil  func(*testing.T, Config)
	}{
		"by a service": {true, nil},
		"by a command": {false, nil},
		"revoked": {true, func(t *testing.T, cfg Config) {
			change(t, cfg.Layout.HostIdentity(), `"state"`, `"revoked":"it is lost","state"`)
		}},
		"unreadable": {true, func(t *testing.T, cfg Config) { change(t, cfg.Layout.HostIdentity(), `"state"`, `"stat"`) }},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			cfg, i := machine(t), newIssuer(t)
			enrolled(t, cfg, i, nobody(t))
			first := working(t, cfg)
			declaredByMesh(t, first, page("web", "1"))
			if err := first.Close(); err != nil {
				t.Fatal(err)
			}
			if c.spoil != nil {
				c.spoil(t, cfg)
			}
			open := working
			if c.served {
				open = serving
			}
			s := open(t, cfg)
			began := time.Now()
			got, err := s.Retire(t.Context(), RetireRequest{})
			if err != nil || got.Told || !got.Forgotten || got.Mesh != meshID {
				t.Fatalf("%+v, %v", got, err)
			}
			if took := time.Since(began); took > seekTime+tellTime {
				t.Errorf("it waited %s for nobody", took)
			}
			st, err := s.Status(t.Context())
			if err != nil || st.State != StateHosted || isThere(t, cfg.Layout.Path("/srv/page")) || isThere(t, cfg.Layout.HostIdentity()) {
				t.Errorf("%+v, %v", st, err)
			}
			// What this mesh was not told is not for the next.
			if !s.allSent() {
				t.Error("reports wait for another mesh")
			}
		})
	}
}

func change(t *testing.T, path, old, now string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(b), old) {
		t.Fatal(err, string(b))
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(b), old, now, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A deaf control plane is one that takes no report.
func TestRetireWaitsForNoAnswer(t *testing.T) {
	cfg, i := machine(t), newIssuer(t)
	p := newPlane(t, i, page("web", "1"))
	p.deaf = true
	enrolled(t, cfg, i, p.Listener.Addr().String())
	s := serving(t, cfg)
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	if !s.await(ctx, func() bool { return isThere(t, cfg.Layout.Path("/srv/page")) }) {
		t.Fatal("not applied")
	}
	got, err := s.Retire(ctx, RetireRequest{})
	if err != nil || got.Told || !got.Forgotten {
		t.Errorf("%+v, %v", got, err)
	}
}

// stubborn cannot take anything away.
type stubborn struct{ resource.Kind }

func (stubborn) Remove(context.Context, resource.Record) (declaration.Outcome, string, error) {
	return "", "", errors.New("it is immutable")
}

func TestWhatCannotBeTakenAwayKeepsTheIdentity(t *testing.T) {
	for _, force := range []bool{false, true} {
		cfg, i := machine(t), newIssuer(t)
		enrolled(t, cfg, i, nobody(t))
		s := serving(t, cfg)
		document := page("web", "1")
		declaredByMesh(t, s, document)
		file := s.engine.Kinds[declaration.TypeFile]
		s.engine.Kinds[declaration.TypeFile] = stubborn{file}
		got, err := s.Retire(t.Context(), RetireRequest{Force: force})
		if err != nil || !slices.Equal(got.Left, []string{"file:/srv/page"}) || got.Forgotten != force || isThere(t, cfg.Layout.HostIdentity()) == force {
			t.Fatalf("%+v, %v", got, err)
		}
		st, err := s.Status(t.Context())
		if err != nil || (st.State == StateHosted) != force || strings.Contains(strings.Join(st.Warnings, "\n"), "is being retired") == force {
			t.Errorf("force %v: %+v, %v", force, st, err)
		}
		if !force {
			// The mesh does not get it back.
			if err := toldByMesh(s, document); fault.KindOf(err) != fault.Refused || !strings.Contains(err.Error(), "being retired") {
				t.Errorf("it takes a declaration: %v", err)
			}
		}
		s.engine.Kinds[declaration.TypeFile] = file
		if got, err := s.Retire(t.Context(), RetireRequest{}); err != nil || !got.Forgotten || len(got.Left) != 0 || isThere(t, cfg.Layout.Path("/srv/page")) {
			t.Errorf("again: %+v, %v", got, err)
		}
	}
}

func TestKeptResourcesAreNobodys(t *testing.T) {
	cfg, i := machine(t), newIssuer(t)
	enrolled(t, cfg, i, nobody(t))
	s := serving(t, cfg)
	declaredByMesh(t, s, page("web", "1"))
	dry, err := s.Retire(t.Context(), RetireRequest{DryRun: true, KeepResources: true})
	if err != nil || len(dry.Steps) != 1 || dry.Steps[0].Action != apply.Release {
		t.Errorf("%+v, %v", dry, err)
	}
	got, err := s.Retire(t.Context(), RetireRequest{KeepResources: true})
	if err != nil || !got.Forgotten || len(got.Resources) != 1 || got.Resources[0].Outcome != declaration.Released {
		t.Fatalf("%+v, %v", got, err)
	}
	if _, err := s.Pass(t.Context()); err != nil {
		t.Error(err)
	}
	if owned, err := s.Owned(t.Context()); err != nil || len(owned) != 0 || !isThere(t, cfg.Layout.Path("/srv/page")) {
		t.Errorf("%+v, %v", owned, err)
	}
}

// TestANodeThatEnrolsAnewTakesDeclarations, also of the mesh it left.
func TestANodeThatEnrolsAnewTakesDeclarations(t *testing.T) {
	cfg, i := machine(t), newIssuer(t)
	enrolled(t, cfg, i, nobody(t))
	s := working(t, cfg)
	declaredByMesh(t, s, page("web", "1"))
	if _, err := s.Retire(t.Context(), RetireRequest{}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	enrolled(t, cfg, i, nobody(t))
	change(t, cfg.Layout.HostIdentity(), `"state":"active"`, `"state":"enrolling"`) // of another node, as far as the order knows
	s = working(t, cfg)
	s.mu.Lock()
	s.identity.Stage, s.identity.NodeID = "active", "n2"
	s.mu.Unlock()
	declaredByMesh(t, s, page("web", "2"))
	if !isThere(t, cfg.Layout.Path("/srv/page")) {
		t.Error("nothing was applied")
	}
}

// retireOnce is the process that TestRetireIsKilledAnywhere kills.
func retireOnce(l layout.Layout) error {
	s, err := Open(context.Background(), Config{Layout: l, Clock: clock.System, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	s.start(beat{})
	_, err = s.Retire(context.Background(), RetireRequest{KeepResources: os.Getenv("SERVICE_TEST_KEEP") != ""})
	return errors.Join(err, s.Close())
}

// TestRetireIsKilledAnywhere: what comes up afterwards, told the old declaration by
// its mesh, applies nothing of it once the retirement has begun, and running it
// again ends it. What is to be kept is touched at no moment.
func TestRetireIsKilledAnywhere(t *testing.T) {
	strace, err := exec.LookPath("strace")
	if err != nil || exec.Command(strace, "-f", "-o", "/dev/null", "-e", "trace=none", "true").Run() != nil {
		t.Skip("strace is not here, or does not work")
	}
	i, document := newIssuer(t), page("web", "1")
	began, early := 0, 0
	for _, keep := range []string{"", "1"} {
		for _, calls := range []string{"unlink,unlinkat", "fsync,fdatasync", "rename,renameat,renameat2"} {
			for n := 1; ; n++ {
				cfg := machine(t)
				enrolled(t, cfg, i, nobody(t))
				change(t, cfg.Layout.HostIdentity(), `"state"`, `"revoked":"so that nobody is sought","state"`)
				first := working(t, cfg)
				declaredByMesh(t, first, document)
				if err := first.Close(); err != nil {
					t.Fatal(err)
				}
				c := exec.Command(strace, "-f", "-qq", "-o", "/dev/null", "-e", "trace="+calls,
					"-e", fmt.Sprintf("inject=%s:signal=KILL:when=%d", calls, n), os.Args[0])
				c.Env = append(os.Environ(), "SERVICE_TEST_RETIRE="+cfg.Layout.Root, "SERVICE_TEST_KEEP="+keep)
				out, err := c.CombinedOutput()
				st, _ := c.ProcessState.Sys().(syscall.WaitStatus)
				killed := st.Signaled() && st.Signal() == syscall.SIGKILL
				if err != nil && !killed {
					t.Fatalf("%v\n%s", err, out)
				}
				at := fmt.Sprintf("keep %q, killed at %s %d", keep, calls, n)
				s := working(t, cfg)
				w, err := s.store.About()
				if err != nil || w == nil {
					t.Fatalf("%s: %v", at, err)
				}
				if w.Source == store.SourceRetire {
					began++
					if err := toldByMesh(s, document); err == nil {
						t.Errorf("%s: the old declaration is taken", at)
					}
					if _, err := s.Pass(t.Context()); err != nil {
						t.Errorf("%s: %v", at, err)
					}
					if isThere(t, cfg.Layout.Path("/srv/page")) != (keep != "") {
						t.Errorf("%s: the page", at)
					}
				} else {
					early++
				}
				got, err := s.Retire(t.Context(), RetireRequest{KeepResources: keep != ""})
				if err != nil || !got.Forgotten {
					t.Errorf("%s: again: %+v, %v", at, got, err)
				}
				owned, err := s.Owned(t.Context())
				if err != nil || len(owned) != 0 || isThere(t, cfg.Layout.Path("/srv/page")) != (keep != "") || isThere(t, cfg.Layout.HostIdentity()) {
					t.Errorf("%s: in the end %+v, %v", at, owned, err)
				}
				if temporary, _ := filepath.Glob(filepath.Join(cfg.Layout.HostState(), ".*")); len(temporary) != 0 {
					t.Errorf("%s: left %q", at, temporary)
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
				if !killed {
					break
				}
			}
		}
	}
	if began < 5 || early == 0 {
		t.Errorf("%d kills after it had begun, %d before", began, early)
	}
}

// TestAMachineOfNoMeshRetires: it is the way to own nothing.
func TestAMachineOfNoMeshRetires(t *testing.T) {
	s := working(t, machine(t))
	if got, err := s.Retire(t.Context(), RetireRequest{}); err != nil || !got.Forgotten {
		t.Errorf("nothing was ever declared: %+v, %v", got, err)
	}
	if _, err := s.Apply(t.Context(), page("web", "1")); err != nil {
		t.Fatal(err)
	}
	got, err := s.Retire(t.Context(), RetireRequest{})
	if err != nil || !got.Forgotten || got.Mesh != "" || len(got.Resources) != 1 || isThere(t, s.Layout.Path("/srv/page")) {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := s.Apply(t.Context(), page("web", "1")); err != nil || !isThere(t, s.Layout.Path("/srv/page")) {
		t.Errorf("the same again: %v", err)
	}
}
