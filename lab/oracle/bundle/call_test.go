//go:build machine

package bundle

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/nox-mesh/nox-mesh/lab/oracle/tool"
)

// An answer is how a program ended and what it printed.
type answer struct {
	program, command, out, err string
	code                       int
}

// judges skips the test unless it runs as root, for the namespaces, and the
// programs are here.
func judges(t *testing.T, programs ...string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: other programs are given a network namespace")
	}
	needs(t, "unshare", "nsenter", "ip", "sh", "go")
	for _, p := range programs {
		if p == "oras" || p == "cosign" {
			tool.Need(t, p)
		} else {
			needs(t, p)
		}
	}
}

// private is a place for a program whose mounts, and what it leaves where TMPDIR
// does not count, are gone when it ends: skopeo unpacks archives into /var/tmp,
// forgets them there when it fails, and has a cache in /var/lib/containers.
var private = []string{"unshare", "-m", "sh", "-ec",
	`for dir in /var/tmp /var/lib/containers; do [ ! -d $dir ] || mount -t tmpfs tmpfs $dir; done; exec "$@"`, "sh"}

// ask runs a program of others where there is no network, not even a loopback.
func (b *bench) ask(program string, args ...string) answer {
	b.t.Helper()
	return b.in(append([]string{"unshare", "-n"}, private...), program, args...)
}

// in runs a program behind another, which gives it its place.
func (b *bench) in(place []string, program string, args ...string) answer {
	b.t.Helper()
	path := program
	if program == "oras" || program == "cosign" {
		path = tool.Need(b.t, program)
	}
	words := slices.Concat(place, []string{path}, args)
	c := exec.CommandContext(b.t.Context(), words[0], words[1:]...)
	c.Dir, c.Env = b.dir, b.env()
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	err := c.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		b.t.Fatal(err)
	}
	return answer{program, program + " " + strings.Join(args, " "), out.String(), errs.String(), c.ProcessState.ExitCode()}
}

// env keeps what the programs of others keep in the bench's folder.
func (b *bench) env() []string {
	return []string{
		"LC_ALL=C", "PATH=" + os.Getenv("PATH"), "HOME=" + b.dir, "TMPDIR=" + b.path("tmp"), "TUF_ROOT=" + b.path("tuf"),
		"CONTAINERS_CONF=" + b.path("containers.conf"), "CONTAINERS_STORAGE_CONF=" + b.path("storage.conf"),
		"NOX_PASSPHRASE_FILE=" + b.path("passphrase"),
	}
}

// must holds that a program did what it was asked, and returns what it printed.
func (b *bench) must(a answer) string {
	b.t.Helper()
	if a.code != 0 {
		b.t.Fatalf("%s: exit %d\n%s%s", a.command, a.code, a.out, a.err)
	}
	return a.out
}
