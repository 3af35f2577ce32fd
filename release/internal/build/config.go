// Package build compiles the programs of a release.
//
// .goreleaser.yaml is the only place with build flags. This package reads it
// and runs "go build" with exactly those flags, in an environment that holds
// nothing else that changes the result; so does GoReleaser, and so can anybody.
// What the file says and this package does not understand is refused, not
// passed over.
package build

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/internal/input"
)

// ConfigName is the file with the build flags, at the top of the source.
const ConfigName = ".goreleaser.yaml"

// A Target is one program, as .goreleaser.yaml describes it.
type Target struct {
	ID           string   `yaml:"id"`
	Main         string   `yaml:"main"`
	Binary       string   `yaml:"binary"`
	Env          []string `yaml:"env"`
	Flags        []string `yaml:"flags"`
	LDFlags      []string `yaml:"ldflags"`
	ModTimestamp string   `yaml:"mod_timestamp"`
	GOOS         []string `yaml:"goos"`
	GOARCH       []string `yaml:"goarch"`
	// Hooks run after a build and change nothing of it; they are GoReleaser's.
	Hooks yaml.Node `yaml:"hooks"`
}

// A Config is what .goreleaser.yaml says about builds.
type Config struct{ Targets []Target }

// Read reads the file at path.
func Read(path string) (Config, error) {
	b, err := input.ReadFile(path, 1<<20)
	if errors.Is(err, fs.ErrNotExist) {
		return Config{}, fault.Failedf("cannot read build flags: %w", err).Hint("run it in the source tree, or give --source DIR")
	}
	if err != nil {
		return Config{}, fmt.Errorf("cannot read build flags: %w", err)
	}
	return parse(b)
}

func parse(b []byte) (Config, error) {
	// Only "builds" is ours; inside it every key counts.
	var file struct {
		Builds yaml.Node `yaml:"builds"`
	}
	if err := yaml.Unmarshal(b, &file); err != nil {
		return Config{}, fault.Refusedf("cannot read build flags: %w", err)
	}
	plain, err := flatten(&file.Builds)
	if err != nil {
		return Config{}, fault.Refusedf("cannot read build flags: %w", err)
	}
	var c Config
	d := yaml.NewDecoder(bytes.NewReader(plain))
	d.KnownFields(true)
	if err := d.Decode(&c.Targets); err != nil {
		return Config{}, fault.Refusedf("cannot read build flags: %w", err)
	}
	for _, t := range c.Targets {
		if t.ID == "" || t.Main == "" || t.Binary == "" || len(t.GOARCH) == 0 || !slices.Equal(t.GOOS, []string{"linux"}) {
			return Config{}, fault.Refusedf("cannot read build flags: build %q lacks its main, binary or linux target", t.ID)
		}
	}
	return c, nil
}

// flatten writes a node again with its anchors resolved, so that it can be
// decoded strictly on its own.
func flatten(n *yaml.Node) ([]byte, error) {
	var v any
	if err := n.Decode(&v); err != nil {
		return nil, err
	}
	return yaml.Marshal(v)
}

// target returns the build called id for goarch.
func (c Config) target(id, goarch string) (Target, error) {
	for _, t := range c.Targets {
		if t.ID == id {
			if !slices.Contains(t.GOARCH, goarch) {
				return Target{}, fault.Usagef("cannot build %q for %q: %s does not name it", id, goarch, ConfigName)
			}
			return t, nil
		}
	}
	return Target{}, fault.Failedf("cannot build %q: %s has no such build", id, ConfigName)
}

// arguments returns the arguments of "go" that build t as version into out.
func (t Target) arguments(version, out string) ([]string, error) {
	args := []string{"build"}
	for _, f := range append(slices.Clone(t.Flags), "-ldflags="+strings.Join(t.LDFlags, " ")) {
		f = strings.NewReplacer("{{.Version}}", version, "{{ .Version }}", version).Replace(f)
		if strings.Contains(f, "{{") {
			return nil, fault.Refusedf("cannot build %q: flag %q holds a template other than {{.Version}}", t.ID, f)
		}
		args = append(args, f)
	}
	return append(args, "-o", out, t.Main), nil
}
