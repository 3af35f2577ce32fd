package build

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/nox-mesh/nox-mesh/internal/child"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// Architectures are those a release is for, as uname -m says them, with their
// names in Go.
var Architectures = map[string]string{"x86_64": "amd64", "aarch64": "arm64"}

// A Compiler runs the go command on one source tree.
type Compiler struct {
	source string
	config Config
	goTool string
	env    []string
	// GoVersion is that of the toolchain ("go1.26.0").
	GoVersion string
}

// kept are the settings that say where modules come from and where they are
// cached. They change whether a build works, never what it gives.
var kept = []string{"GOCACHE", "GOMODCACHE", "GOPATH", "GOPROXY", "GOSUMDB", "GONOPROXY", "GONOSUMDB", "GOPRIVATE", "GOINSECURE", "GOVCS", "GOTMPDIR"}

// New makes a compiler of the source tree at source.
func New(ctx context.Context, source string) (*Compiler, error) {
	source, err := filepath.Abs(source)
	if err != nil {
		return nil, err
	}
	config, err := Read(filepath.Join(source, ConfigName))
	if err != nil {
		return nil, err
	}
	tool, err := exec.LookPath("go")
	if err == nil {
		tool, err = filepath.Abs(tool)
	}
	if err != nil {
		return nil, fault.Failedf("cannot find the go command: %w", err).Hint("install Go and have it in PATH")
	}
	c := &Compiler{source: source, config: config, goTool: tool}
	return c, c.settings(ctx)
}

// settings asks go for what a person may have set with "go env -w" or in the
// environment, and keeps of it what does not change the result.
func (c *Compiler) settings(ctx context.Context) error {
	ask := child.Command{Path: c.goTool, Args: append([]string{"env", "-json", "GOVERSION"}, kept...), Dir: c.source, Env: []string{"GOTOOLCHAIN=local"}}
	for _, name := range append([]string{"HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"}, kept...) {
		if v, ok := os.LookupEnv(name); ok {
			ask.Env = append(ask.Env, name+"="+v)
		}
	}
	res, err := child.Run(ctx, ask)
	if err != nil {
		return fmt.Errorf("cannot ask go for its settings: %w", err)
	}
	answer := map[string]string{}
	if err := json.Unmarshal(res.Stdout, &answer); err != nil {
		return fmt.Errorf("cannot ask go for its settings: %w", err)
	}
	c.GoVersion = answer["GOVERSION"]
	c.env = []string{"GOENV=off", "GOFLAGS=", "GOWORK=off", "GOTOOLCHAIN=local", "HOME=" + os.Getenv("HOME")}
	// Where the go command works; with -trimpath it is not in what it makes.
	if v, ok := os.LookupEnv("TMPDIR"); ok {
		c.env = append(c.env, "TMPDIR="+v)
	}
	for _, name := range kept {
		if v := answer[name]; v != "" {
			c.env = append(c.env, name+"="+v)
		}
	}
	return nil
}

// Build compiles the program called id (".goreleaser.yaml") for an architecture
// (a key of Architectures) as version into the directory dir, and returns the
// path of the binary.
func (c *Compiler) Build(ctx context.Context, id, architecture, version, dir string) (string, error) {
	goarch, ok := Architectures[architecture]
	if !ok {
		return "", fault.Usagef("cannot build for %q: the architectures are x86_64 and aarch64", architecture)
	}
	t, err := c.config.target(id, goarch)
	if err != nil {
		return "", err
	}
	dir, err = filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	out := filepath.Join(dir, t.Binary)
	args, err := t.arguments(version, out)
	if err != nil {
		return "", err
	}
	env := slices.Concat(c.env, t.Env, []string{"GOOS=linux", "GOARCH=" + goarch})
	if _, err := child.Run(ctx, child.Command{Path: c.goTool, Args: args, Env: env, Dir: c.source, Timeout: 30 * time.Minute}); err != nil {
		return "", fmt.Errorf("cannot build %q for %s: %w", id, architecture, err)
	}
	return out, nil
}
