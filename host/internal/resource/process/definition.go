package process

import (
	"fmt"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nox-mesh/nox-mesh/host/declaration"
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
	account, err := k.account(p.User)
	if err != nil {
		return definition{}, err
	}
	d := supervise.Definition{
		Command:      p.Command,
		UID:          account.uid,
		GID:          account.gid,
		Groups:       account.groups,
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

// privileged: the host may start a process as anybody.
func privileged() bool { return os.Geteuid() == 0 }
