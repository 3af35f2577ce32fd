package check

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nox-mesh/nox-mesh/internal/child"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/release/internal/place"
)

// A witness is a program of others that reads a release too. It is heard after
// our own reading, so it is told what files a release has, and believes nothing
// of them.
//
// It works in a folder of its own, which is removed; it touches nothing else,
// uses no network and leaves no process.
type witness interface {
	// needs are the programs it takes, its own first.
	needs() []string
	// version is what the program says it is; the error is why one like it, or
	// anybody who calls it so, cannot use it here.
	version(ctx context.Context, b bench) (string, error)
	// testify has it verify, and returns how many files it found good. The error
	// is bad when it refuses one.
	testify(ctx context.Context, b bench, r *reading) (int, error)
	// how says what it does with each file.
	how() string
}

// witnesses are all there are, in the order in which they are heard.
var witnesses = []witness{pacman{}, gpg{}, cosign{}}

// A Testimony is what a witness said, or why it was not heard.
type Testimony struct {
	Program string `json:"program"`
	Version string `json:"version,omitempty"`
	// Verified is how many files it found good: all it was shown.
	Verified int `json:"verified"`
	// How says what it did with each.
	How string `json:"how,omitempty"`
	// Skipped is why it was not heard, which says nothing for the release.
	Skipped string `json:"skipped,omitempty"`
}

// In looks for programs in the folders of path, which is written as $PATH is.
func In(path string) func(program string) string {
	return func(program string) string {
		for _, dir := range filepath.SplitList(path) {
			file := filepath.Join(dir, program)
			if fi, err := os.Stat(file); filepath.IsAbs(file) && err == nil && fi.Mode().IsRegular() && unix.Access(file, unix.X_OK) == nil {
				return file
			}
		}
		return ""
	}
}

// hearWitnesses hears those that are here.
func (r *reading) hearWitnesses(ctx context.Context) error {
	if r.Find == nil {
		return nil
	}
	for _, w := range witnesses {
		t, err := r.hear(ctx, w)
		if err != nil {
			return err
		}
		if t.Skipped != "" {
			r.report.Skipped++
		}
		r.report.Witnesses = append(r.report.Witnesses, t)
	}
	return nil
}

func (r *reading) hear(ctx context.Context, w witness) (t Testimony, err error) {
	b := bench{tools: map[string]string{}, root: os.Geteuid() == 0}
	t.Program = w.needs()[0]
	for _, program := range w.needs() {
		if b.tools[program] = r.Find(program); b.tools[program] == "" {
			t.Skipped = program + " is not here"
			return t, nil
		}
	}
	// Its own name may hold anything; this one goes into files and addresses.
	var done func() error
	if b.dir, done, err = place.Temp(); err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, done()) }()
	if t.Version, err = w.version(ctx, b); err != nil {
		t.Skipped = err.Error()
		return t, ctx.Err()
	}
	t.How = w.how()
	if t.Verified, err = w.testify(ctx, b, r); err == nil && t.Verified == 0 {
		err = fmt.Errorf("internal error: %s was shown nothing", t.Program)
	}
	return t, err
}

// A bench is where a witness works.
type bench struct {
	dir   string
	tools map[string]string
	root  bool
}

func (b bench) path(name ...string) string {
	return filepath.Join(append([]string{b.dir}, name...)...)
}

// run runs one of the programs. The error is how it ended, and its last lines.
func (b bench) run(ctx context.Context, program string, args ...string) (string, error) {
	res, err := child.Run(ctx, child.Command{
		Path: b.tools[program], Args: args, Dir: b.dir, Timeout: 5 * time.Minute,
		Env: []string{"HOME=" + b.dir, "TMPDIR=" + b.dir},
	})
	if err != nil {
		// The command itself is long, and its folder is gone.
		command := strings.Join(append([]string{filepath.Base(b.tools[program])}, args...), " ")
		err = errors.New(strings.TrimPrefix(err.Error(), command+": "))
		if !res.Exited {
			err = fmt.Errorf("%w: %w", errNoVerdict, err)
		}
	}
	return string(res.Stdout), err
}

// errNoVerdict is that of a witness that was killed, hung or did not start.
var errNoVerdict = errors.New("it did not come to an end by itself")

// refuses is that a witness refuses what we accept. One that was stopped has not
// said anything.
func refuses(ctx context.Context, program, name string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.Is(err, errNoVerdict) {
		return fault.Failedf("cannot ask %s about %q: %w", program, name, err).Hint("run it again, or without %s in PATH", program)
	}
	return bad(name, "%s refuses it: %w", program, err)
}
