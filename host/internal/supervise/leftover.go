package supervise

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// EndLeftover ends what the shim of the folder dir left behind when it was
// killed: its child, everything in the child's session, what descends from it, and
// all else that has the shim's mark. It does nothing when there is nothing, when nobody can say what there is, or
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
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if s.Child != nil {
		if err := endSession(ctx, *s.Child); err != nil {
			return err
		}
	}
	if s.Phase == Stopped {
		return nil // it ended by itself, after all else
	}
	return endMarked(ctx, s.Shim)
}

// endSession ends the child, and what is in its session or descends from it.
func endSession(ctx context.Context, child Proc) error {
	leader, err := Find(child)
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
	return end(ctx, child)
}

// mark is in the environment of all that the shim starts, and of what that starts.
// It is how those are found that the state does not name: a child whose shim was
// killed before it wrote it down, or what a child left that is gone.
func (p Proc) mark() string { return fmt.Sprintf("NOX_SHIM=%d-%d", p.PID, p.Start) }

// endMarked ends what has the mark of the shim. PIDs and times since boot come again
// after the next one.
func endMarked(ctx context.Context, shim Proc) error {
	boot, err := bootID()
	if err != nil || shim.PID <= 1 || shim.Boot != boot {
		return err
	}
	mark := append([]byte(shim.mark()), 0)
	for {
		all, err := processes()
		if err != nil {
			return err
		}
		found := false
		for _, p := range all {
			if p.zombie || p.pid == os.Getpid() || !bytes.Contains(append([]byte{0}, environ(p.pid)...), append([]byte{0}, mark...)) {
				continue
			}
			found = true
			if err := end(ctx, Proc{PID: p.pid, Start: p.start, Boot: boot}); err != nil {
				return err
			}
		}
		if !found {
			return nil
		}
	}
}

// maxEnviron is more than an environment can be (execve(2): a quarter of the stack).
const maxEnviron = 8 << 20

// environ is what a process was started with; nil when it cannot be read: it is
// somebody else's, or ended meanwhile.
func environ(pid int) []byte {
	f, err := os.Open(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		return nil
	}
	defer f.Close()
	b, _ := io.ReadAll(io.LimitReader(f, maxEnviron))
	return b
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
