package process

import (
	"fmt"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/host/internal/account"
	"github.com/nox-mesh/nox-mesh/host/internal/supervise"
)

// A definition is what the shim shall run, as it is on disk.
type definition struct {
	supervise.Definition
	bytes  []byte
	digest string
}

// definition turns the wish into what the shim reads. The same wish gives the
// same bytes in every version of the host: other bytes restart the process.
func (k *Kind) definition(p *declaration.Process) (definition, error) {
	user, err := k.user(p.User)
	if err != nil {
		return definition{}, fmt.Errorf("cannot look up user %q: %w", p.User, err)
	}
	d := supervise.Definition{
		Command:      p.Command,
		UID:          user.UID,
		GID:          user.GID,
		Groups:       user.Groups,
		Directory:    p.WorkingDirectory,
		Once:         p.Run == declaration.RunOnce,
		Restart:      string(p.Restart),
		SuccessCodes: p.SuccessCodes,
		StopTimeout:  time.Duration(p.StopTimeout) * time.Second,
		FailureLimit: p.FailureLimit,
		Rollback:     p.Rollback,
	}
	for name, value := range p.Env {
		d.Env = append(d.Env, name+"="+value)
	}
	slices.Sort(d.Env)
	sig := unix.SignalNum(p.StopSignal)
	if sig == 0 {
		return definition{}, fmt.Errorf("internal error: %q is no signal", p.StopSignal)
	}
	d.StopSignal = int(sig)
	if k.adjust != nil {
		k.adjust(&d)
	}
	b, err := d.Bytes()
	return definition{d, b, supervise.Digest(b)}, err
}

// user is what the process runs as. A host that is not root's cannot become
// anybody else: there, every process is its own user's.
func (k *Kind) user(name string) (account.User, error) {
	if os.Geteuid() != 0 {
		return account.User{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}, nil
	}
	return account.Lookup(k.layout, name)
}
