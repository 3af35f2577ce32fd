package supervise

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"time"
)

// EndLeftover ends what the shim of the folder dir left behind when it was
// killed: its child, everything in the child's session, and what descends from
// it. It does nothing when there is nothing, when nobody can say what there is, or
// when the PID is a stranger's. No shim may live over dir.
func EndLeftover(dir string) error {
	s, err := ReadState(dir)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrDamaged) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot read the state of a process: %w", err)
	}
	return endLeftover(s)
}

func endLeftover(s State) error {
	if s.Child == nil {
		return nil
	}
	leader, err := Find(*s.Child)
	if leader == nil || err != nil {
		// Without its leader a session cannot be told from a stranger's.
		return err
	}
	defer leader.Close()
	// As long as the leader is there its PID, which is the name of its session,
	// is nobody else's; stopped, it does not make new ones.
	if err := leader.Signal(syscall.SIGSTOP); err != nil {
		return fmt.Errorf("cannot stop process %d, left by a shim that was killed: %w", leader.PID, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for {
		others, err := under(leader.PID)
		if err != nil {
			return err
		}
		if len(others) == 0 {
			break
		}
		for _, p := range others {
			if err := end(ctx, p); err != nil {
				return err
			}
		}
	}
	return end(ctx, *s.Child)
}

// under lists the processes in the leader's session and below it, without it.
func under(leader int) ([]Proc, error) {
	boot, err := bootID()
	if err != nil {
		return nil, err
	}
	all, err := processes()
	if err != nil {
		return nil, err
	}
	parent := map[int]int{}
	for _, p := range all {
		parent[p.pid] = p.parent
	}
	var found []Proc
	for _, p := range all {
		if p.pid == leader || p.zombie {
			continue
		}
		below := p.session == leader
		// The list is no snapshot; the bound is against a circle in it.
		for up, n := p.parent, 0; !below && up > 1 && n < len(all); up, n = parent[up], n+1 {
			below = up == leader
		}
		if below {
			found = append(found, Proc{PID: p.pid, Start: p.start, Boot: boot})
		}
	}
	return found, nil
}

// end kills a process and waits for its end.
func end(ctx context.Context, p Proc) error {
	h, err := Find(p)
	if h == nil || err != nil {
		return err
	}
	defer h.Close()
	err = h.Signal(syscall.SIGKILL)
	if err == nil {
		err = h.Wait(ctx)
	}
	if err != nil {
		return fmt.Errorf("cannot end process %d, left by a shim that was killed: %w", p.PID, err)
	}
	return nil
}
