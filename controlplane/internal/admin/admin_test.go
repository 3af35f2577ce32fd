package admin_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nox-mesh/nox-mesh/bundle/content"
	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/address"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/admin"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/admission"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/repository"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/state"
	"github.com/nox-mesh/nox-mesh/controlplane/internal/wire"
	"github.com/nox-mesh/nox-mesh/internal/clock"
	"github.com/nox-mesh/nox-mesh/internal/door"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/internal/layout"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

const executable = "/usr/local/bin/mesh-controller"

// open is a desk behind its socket, of a mesh with the nodes alpha, zulu and
// beta (revoked) and a machine that is pending.
func open(t *testing.T) (*admin.Client, *admin.Desk) {
	t.Helper()
	dir := t.TempDir()
	store, err := state.Open(filepath.Join(dir, "state.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	_, authority, err := admission.Found(store, clock.At(start))
	if err != nil {
		t.Fatal(err)
	}
	blobs, err := content.Open(filepath.Join(dir, "content"))
	if err != nil {
		t.Fatal(err)
	}
	listeners, served, err := address.Listen([]string{"127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listeners[0].Close() })
	office := &admission.Office{Store: store, Authority: authority, Clock: clock.At(start), Addresses: served.Find}
	log := slog.New(slog.DiscardHandler)
	desk := &admin.Desk{
		Office: office, Content: blobs, Collector: blobs.Collector(func(content.Report, error) {}), Layout: layout.Layout{Root: dir},
		Wire: wire.New(office, blobs, log), Served: served, Log: log,
		Self: admin.Self(layout.Layout{}, executable, ""),
	}
	desk.Repository = repository.New(store, blobs, desk.Layout.ControllerSeed(), func() (*trust.Policy, error) { return admin.Trusted(desk.Layout) }, log)
	err = store.Update(func(tx *state.Tx) error {
		for _, n := range []*state.Node{
			{ID: strings.Repeat("1", 32), Name: "zulu", Key: "k1", State: state.Enrolled},
			{ID: strings.Repeat("2", 32), Name: "alpha", Key: "k2", State: state.Enrolled},
			{ID: strings.Repeat("3", 32), Key: "k3", State: state.Pending},
			{ID: strings.Repeat("4", 32), Name: "beta", Key: "k4", State: state.Revoked},
		} {
			if err := tx.PutNode(n); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	l, err := door.Listen(filepath.Join(dir, "s"), door.OwnerOnly)
	if err != nil {
		t.Fatal(err)
	}
	srv := door.Server{Handler: desk.Handler(), Log: log}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(ctx, l) }()
	t.Cleanup(func() { stop(); <-ended })
	return admin.NewClient(filepath.Join(dir, "s")), desk
}

// refusal asks and returns the error.
func refusal[Q, A any](verb func(context.Context, *admin.Client, Q) (A, error), q Q) func(context.Context, *admin.Client) error {
	return func(ctx context.Context, c *admin.Client) error {
		_, err := verb(ctx, c, q)
		return err
	}
}

func declaration(resources ...string) []byte {
	return []byte(`{"schema":1,"name":"x","resources":[` + strings.Join(resources, ",") + `]}`)
}

const (
	motd    = `{"id":"m","type":"file","path":"/etc/motd","content":"x"}`
	binary  = `{"id":"b","type":"file","path":"/usr/local/bin/mesh-controller","content":"x"}`
	process = `{"id":"p","type":"process","name":"mesh-controller","command":["/usr/local/bin/mesh-controller","serve"]}`
)

func TestWhatTheVerbsRefuse(t *testing.T) {
	c, _ := open(t)
	for name, x := range map[string]struct {
		ask      func(context.Context, *admin.Client) error
		kind     fault.Kind
		sentence string
	}{
		"token for ever":       {refusal(admin.TokenCreate.Ask, admission.TokenOptions{TTL: 1000 * time.Hour, Uses: 1}), fault.Usage, "cannot make a token for 1000h"},
		"token for nobody":     {refusal(admin.TokenCreate.Ask, admission.TokenOptions{TTL: time.Hour}), fault.Usage, "cannot make a token for 0 uses"},
		"unknown token":        {refusal(admin.TokenRevoke.Ask, admin.Ref{Ref: "x"}), fault.Refused, `cannot revoke token "x"`},
		"no address":           {refusal(admin.AddressAdd.Ask, admin.Address{Address: "x"}), fault.Usage, "cannot use the address"},
		"never ours":           {refusal(admin.AddressAdd.Ask, admin.Address{Address: "127.0.0.1:1"}), fault.Refused, `cannot serve "127.0.0.1:1"`},
		"address not there":    {refusal(admin.AddressRemove.Ask, admin.Address{Address: "a:1"}), fault.Refused, `cannot remove address "a:1"`},
		"show nobody":          {refusal(admin.Show.Ask, admin.Ref{Ref: "nobody"}), fault.Refused, `cannot find node "nobody"`},
		"bad name":             {refusal(admin.Declare.Ask, admin.Declaration{Name: "A", Document: declaration(motd)}), fault.Usage, `cannot declare module "A"`},
		"no declaration":       {refusal(admin.Declare.Ask, admin.Declaration{Name: "a", Document: []byte("{")}), fault.Refused, `cannot declare module "a": declaration is not valid`},
		"the same in a plan":   {refusal(admin.Declare.Ask, admin.Declaration{Name: "a", Document: []byte("{"), DryRun: true}), fault.Refused, `cannot declare module "a": declaration is not valid`},
		"no rule":              {refusal(admin.Declare.Ask, admin.Declaration{Name: "a", Document: declaration(motd), Placement: []string{"here"}}), fault.Usage, `cannot place by "here"`},
		"no such node":         {refusal(admin.Declare.Ask, admin.Declaration{Name: "a", Document: declaration(motd), Placement: []string{"node=x"}}), fault.Refused, `cannot place by "node=x"`},
		"no such module":       {refusal(admin.Undeclare.Ask, admin.ModuleRef{Name: "a"}), fault.Refused, `cannot undeclare module "a"`},
		"approve twice":        {refusal(admin.Approve.Ask, admin.Approval{Ref: "alpha"}), fault.Refused, `cannot approve node "alpha": it is enrolled`},
		"approve under a name": {refusal(admin.Approve.Ask, admin.Approval{Ref: "3333", Name: "alpha"}), fault.Refused, `cannot name a node "alpha"`},
		"approve with no name": {refusal(admin.Approve.Ask, admin.Approval{Ref: "3333", Name: "A b"}), fault.Usage, `cannot name a node "A b"`},
		"revoke nobody":        {refusal(admin.Revoke.Ask, admin.Leaving{Ref: "nobody"}), fault.Refused, `cannot find node "nobody"`},
	} {
		err := x.ask(t.Context(), c)
		if fault.KindOf(err) != x.kind || !strings.HasPrefix(err.Error(), x.sentence) {
			t.Errorf("%s: %v (kind %d), want kind %d and %q", name, err, fault.KindOf(err), x.kind, x.sentence)
		}
	}
	if es, err := admin.Events.Ask(t.Context(), c, admin.Limit{Limit: 10}); err != nil || len(es) != 1 {
		t.Errorf("a refusal changed something: %v, %v", es, err)
	}
}

func TestAQuestionThatCannotBeReadIsWrongUsage(t *testing.T) {
	_, d := open(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: d.Handler()}
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(l) }()
	defer func() { srv.Close(); <-ended }()
	for _, body := range []string{"", "[]", `{"ref":1}`, `{"reff":"x"}`} {
		res, err := http.Post("http://"+l.Addr().String()+"/v1/show", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(res.Body)
		res.Body.Close()
		var f fault.Error
		if err != nil || json.Unmarshal(b, &f) != nil || f.Kind != fault.Usage || res.StatusCode != http.StatusUnprocessableEntity {
			t.Errorf("%q: %d %s, %v", body, res.StatusCode, b, err)
		}
	}
}

func TestNothingTakesTheControlPlaneAwayWithoutLast(t *testing.T) {
	declare := func(last bool, on []string, resources ...string) func(context.Context, *admin.Client) error {
		return refusal(admin.Declare.Ask, admin.Declaration{Name: "control-plane", Document: declaration(resources...), Placement: on, Last: last})
	}
	for name, x := range map[string]struct {
		ask   func(last bool) func(context.Context, *admin.Client) error
		names []string
	}{
		"undeclare": {func(last bool) func(context.Context, *admin.Client) error {
			return refusal(admin.Undeclare.Ask, admin.ModuleRef{Name: "control-plane", Last: last})
		}, []string{`"process:mesh-controller" (module "control-plane")`, `"file:` + executable + `"`, `"alpha"`}},
		"declare without the process": {func(last bool) func(context.Context, *admin.Client) error {
			return declare(last, nil, binary)
		}, []string{`"process:mesh-controller"`}},
		"declare with another command": {func(last bool) func(context.Context, *admin.Client) error {
			return declare(last, nil, strings.Replace(process, `"serve"`, `"version"`, 1), binary)
		}, []string{`"process:mesh-controller" (module "control-plane") would be removed from it or changed`}},
		"declare without the binary": {func(last bool) func(context.Context, *admin.Client) error {
			return declare(last, nil, process)
		}, []string{`"file:` + executable + `"`}},
		"declare elsewhere": {func(last bool) func(context.Context, *admin.Client) error {
			return declare(last, []string{"node=zulu"}, process, binary)
		}, []string{`"process:mesh-controller"`}},
		"revoke": {func(last bool) func(context.Context, *admin.Client) error {
			return refusal(admin.Revoke.Ask, admin.Leaving{Ref: "alpha", Last: last})
		}, []string{`cannot revoke node "alpha"`, `"process:mesh-controller"`}},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := open(t)
			if err := declare(false, []string{"node=alpha"}, process, binary)(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			err := x.ask(false)(t.Context(), c)
			if fault.KindOf(err) != fault.Refused || !strings.Contains(fault.RemedyOf(err), "--last") {
				t.Fatalf("%v; %s", err, fault.RemedyOf(err))
			}
			for _, want := range x.names {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not name %s", err, want)
				}
			}
			n, err := admin.Show.Ask(t.Context(), c, admin.Ref{Ref: "alpha"})
			if err != nil || n.State != "enrolled" || n.Wanted != 1 {
				t.Errorf("it was done all the same: %+v, %v", n.Node, err)
			}
			if err := x.ask(true)(t.Context(), c); err != nil {
				t.Errorf("with --last: %v", err)
			}
		})
	}
}

func TestWhatLeavesTheControlPlaneWhereItIsIsLetThrough(t *testing.T) {
	c, _ := open(t)
	for name, f := range map[string]func(context.Context, *admin.Client) error{
		"another module":    refusal(admin.Declare.Ask, admin.Declaration{Name: "motd", Document: declaration(motd), Placement: []string{"every"}}),
		"another node":      refusal(admin.Revoke.Ask, admin.Leaving{Ref: "zulu"}),
		"a pending machine": refusal(admin.Revoke.Ask, admin.Leaving{Ref: "3333"}),
		"its own, changed": refusal(admin.Declare.Ask, admin.Declaration{
			Name: "control-plane", Document: declaration(process, binary, strings.ReplaceAll(motd, "motd", "issue")), Placement: []string{"tag=x", "node=alpha"}}),
	} {
		_, err := admin.Declare.Ask(t.Context(), c, admin.Declaration{
			Name: "control-plane", Document: declaration(process, binary), Placement: []string{"node=alpha"}})
		if err != nil {
			t.Fatal(err)
		}
		if err := f(t.Context(), c); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTheSecondTimeIsSaidToBeTheSecond(t *testing.T) {
	c, _ := open(t)
	made, err := admin.TokenCreate.Ask(t.Context(), c, admission.TokenOptions{TTL: time.Hour, Uses: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, already := range []bool{false, true} {
		k, err := admin.TokenRevoke.Ask(t.Context(), c, admin.Ref{Ref: made.ID})
		if err != nil || k.Already != already || !k.Revoked.Equal(start) {
			t.Errorf("token: %+v, %v", k, err)
		}
		n, err := admin.Revoke.Ask(t.Context(), c, admin.Leaving{Ref: "zulu"})
		if err != nil || n.Already != already || n.State != "revoked" {
			t.Errorf("node: %+v, %v", n, err)
		}
		a, err := admin.AddressAdd.Ask(t.Context(), c, admin.Address{Address: "mesh.example.com:1"})
		if err != nil || a.Changed == already {
			t.Errorf("address: %+v, %v", a, err)
		}
	}
}

func TestNodesAreInTheOrderOfTheirNames(t *testing.T) {
	c, _ := open(t)
	ns, err := admin.Nodes.Ask(t.Context(), c, admin.None{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, n := range ns {
		names = append(names, n.Name)
	}
	if got := strings.Join(names, " "); got != "alpha beta zulu " {
		t.Errorf("%q", got)
	}
}
