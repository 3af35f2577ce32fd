package enrol

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nox-mesh/nox-mesh/host/link"
	"github.com/nox-mesh/nox-mesh/lab/fleet"
)

// A blow is who is killed, and when.
type blow struct {
	victim string
	// at is the record between the two at which it comes: after that one was
	// delivered, or instead. With none it comes after a while.
	at      int
	deliver bool
	after   time.Duration
}

func (b blow) String() string {
	switch {
	case b.at == 0:
		return fmt.Sprintf("%s after %s", b.victim, b.after)
	case b.deliver:
		return fmt.Sprintf("%s after record %d", b.victim, b.at)
	}
	return fmt.Sprintf("%s instead of record %d", b.victim, b.at)
}

// The victims: `mesh-host run`, `mesh-controller serve`, the two, and the command
// `mesh-host enrol -`.
var victims = []string{"host", "controller", "both", "command"}

const (
	defaultRounds = 200
	workers       = 4
)

// TestE12KilledBetweenAnyTwoSteps kills the host, the control plane or the command
// between any two records that they exchange, and at random moments; then the
// same command again makes the machine a node, the only one, and the token is
// used once.
func TestE12KilledBetweenAnyTwoSteps(t *testing.T) {
	fleet.Require(t)
	must(t, programs())
	seed, rounds := uint64(time.Now().UnixNano()), defaultRounds
	if s := os.Getenv("NOX_ENROL_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		must(t, err)
		seed = n
	}
	if s := os.Getenv("NOX_ENROL_ROUNDS"); s != "" {
		n, err := strconv.Atoi(s)
		must(t, err)
		rounds = n
	}
	t.Logf("NOX_ENROL_SEED=%d NOX_ENROL_ROUNDS=%d", seed, rounds)

	var list []blow
	t.Run("E-12 nobody is killed", func(t *testing.T) {
		k := newKilling(t, 0)
		most := k.round(blow{victim: "nobody"})
		k.judge()
		if most < 20 {
			t.Fatalf("an enrolment and a link are %d records: the wall is not between them", most)
		}
		list = blows(rand.New(rand.NewPCG(seed, 0)), most, rounds)
		t.Logf("%d records", most)
	})
	next := make(chan blow, len(list))
	for _, b := range list {
		next <- b
	}
	close(next)
	t.Run("E-12", func(t *testing.T) {
		var all sync.WaitGroup
		var ks []*killing
		for w := range workers {
			k := newKilling(t, w+1)
			ks = append(ks, k)
			all.Go(func() {
				for b := range next {
					if t.Failed() {
						return
					}
					k.round(b)
				}
			})
		}
		all.Wait()
		for _, k := range ks {
			k.judge()
		}
	})
}

// blows are one instead of each record, for the host and for the control plane,
// then any, until there are so many.
func blows(r *rand.Rand, most, rounds int) (out []blow) {
	for at := 1; at <= most; at++ {
		out = append(out, blow{victim: "host", at: at}, blow{victim: "controller", at: at})
	}
	r.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	for len(out) < rounds {
		b := blow{victim: victims[r.IntN(len(victims))], at: 1 + r.IntN(most), deliver: r.IntN(3) > 0}
		if r.IntN(4) == 0 {
			b.at, b.after = 0, time.Duration(r.IntN(400))*time.Millisecond
		}
		out = append(out, b)
	}
	return out[:rounds]
}

// A killing is a control plane, a wall before it, and what became of each machine.
type killing struct {
	*site
	wall  *wall
	fates []fate
}

// A fate is a machine and the token it came with.
type fate struct {
	blow  blow
	token string
	node  string
}

func newKilling(t *testing.T, worker int) *killing {
	t.Helper()
	listen := fmt.Sprintf("%s:%d", hereIP, 7500+worker)
	w := build(t, listen)
	return &killing{site: raise(t, listen, w.Addr().String()), wall: w}
}

// round lets one machine enrol while the blow falls, and returns how many records
// there were.
func (k *killing) round(b blow) int {
	fail := func(err error) bool {
		if err != nil {
			k.t.Errorf("%v: %v", b, err)
		}
		return err != nil
	}
	ctx, cancel := context.WithTimeout(k.t.Context(), 2*time.Minute)
	defer cancel()
	token, err := k.plane.Token(ctx, 1)
	if fail(err) {
		return 0
	}
	k.hosts++
	h := &fleet.Host{Binary: k.bin + "/mesh-host", Root: fmt.Sprintf("%s/h%d", k.top, k.hosts)}
	if fail(h.Start(ctx)) {
		return 0
	}
	defer func() {
		fail(h.Stop(syscall.SIGKILL))
		if !k.t.Failed() {
			os.RemoveAll(h.Root)
		}
	}()

	var said bytes.Buffer
	command := h.Command(ctx, strings.NewReader(token.Text()), "enrol", "-")
	command.Stdout, command.Stderr = &said, &said
	started := make(chan struct{})
	fired := k.wall.arm(b.at, b.deliver, func() {
		<-started
		switch b.victim {
		case "host":
			h.Kill()
		case "controller":
			k.plane.Kill()
		case "both":
			h.Kill()
			k.plane.Kill()
		case "command":
			_ = command.Process.Kill()
		}
	})
	if fail(command.Start()) {
		return 0
	}
	close(started)
	if b.at == 0 && b.victim != "nobody" {
		defer time.AfterFunc(b.after, k.wall.now).Stop()
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	var cmdErr error
	over := false
	select {
	case <-fired:
	case cmdErr = <-ended:
		over = true
		// The link that follows has records too; when the fault's is not among
		// them it comes now.
		select {
		case <-fired:
		case <-time.After(300 * time.Millisecond):
			k.wall.now()
		}
	}
	records := k.wall.disarm()

	// Who was killed is started again, as a service manager does.
	if b.victim == "controller" || b.victim == "both" {
		if fail(k.plane.Stop(syscall.SIGKILL)) {
			return 0
		}
		if _, err := k.plane.Start(ctx); fail(err) {
			return 0
		}
	}
	if b.victim == "host" || b.victim == "both" {
		if fail(h.Stop(syscall.SIGKILL)) || fail(h.Start(ctx)) {
			return 0
		}
	}
	if !over {
		cmdErr = <-ended
	}
	if cmdErr != nil && (b.victim == "controller" || b.victim == "nobody") {
		fail(fmt.Errorf("the command did not go on by itself: %w: %s", cmdErr, said.Bytes()))
		return 0
	}
	// The same command again, whatever became of the first.
	if _, err := h.Ask(ctx, token.Text(), "enrol", "-"); fail(err) {
		return 0
	}
	id, err := identityOf(h)
	if fail(err) {
		return 0
	}
	if id.State != "active" {
		fail(fmt.Errorf("the identity is %q", id.State))
	}
	k.fates = append(k.fates, fate{b, token.ID, id.Node})
	return records
}

// judge compares what became of the machines with what the control plane knows.
func (k *killing) judge() {
	k.t.Helper()
	known := map[string]fleet.Known{}
	for _, n := range k.nodes() {
		known[n.ID] = n
	}
	if len(known) != len(k.fates) {
		k.t.Errorf("%d machines became %d nodes", len(k.fates), len(known))
	}
	tokens := k.tokens()
	for _, f := range k.fates {
		if n, ok := known[f.node]; !ok || n.State == "enrolling" || n.State == "pending" {
			k.t.Errorf("%v: node %q is %+v", f.blow, f.node, n)
		}
		t := tokens[f.token]
		if len(t.Holders) != 1 || t.Holders[0].Node != f.node || !t.Holders[0].Used || t.Left != 0 || t.Code != link.TokenUsed {
			k.t.Errorf("%v: node %q came with token %+v", f.blow, f.node, t)
		}
	}
}
