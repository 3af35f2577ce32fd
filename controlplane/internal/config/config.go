// Package config is the operator's file of the control plane,
// /etc/nox-mesh/controller.toml. No bundle declares it and the control plane
// never writes it.
//
//	listen = ["[::]:7443"]              # where nodes connect; one string is fine too
//	repository_listen = "[::]:7480"     # where machines that are no nodes yet fetch
//	                                    # packages and the floor, by plain HTTP; without
//	                                    # it nobody does
//
//	[[admission]]             # a rule; the first that holds decides
//	decision = "refuse"       # or "pending", "admit"
//	hostname = "web-*"        # all that is asked must hold:
//	tag = "web"               # a tag of the token,
//	token = "ID"              # the token,
//	profile.container = "lxc" # what the machine says of itself
//	reason = "no containers"  # told to people, and to the machine
//
// A key that is not known is refused, with the line it is in: a misspelled one must
// not be a silent default. A file that is not there means the defaults.
package config

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"net"
	"os"
	"slices"
	"strconv"

	"github.com/BurntSushi/toml"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/admission"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

const maxSize = 64 << 10

// A Config is what the operator wants.
type Config struct {
	// Listen is where nodes connect, "HOST:PORT"; an empty host is every
	// address of the machine.
	Listen []string
	// RepositoryListen is where the packages and the floor are served; empty is
	// nowhere.
	RepositoryListen []string
	// Admission are the rules of who is admitted.
	Admission admission.Policy
}

// Read reads the file at path.
func Read(path string) (Config, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Parse(nil)
	}
	if err != nil {
		return Config{}, fault.Failedf("cannot read the configuration: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxSize+1))
	if err != nil {
		return Config{}, fault.Failedf("cannot read the configuration: %w", err)
	}
	c, err := Parse(b)
	if err != nil {
		return Config{}, fault.Refusedf("cannot use the configuration %q: %w", path, err).
			Hint("mend the file, then run `mesh-controller serve` again")
	}
	return c, nil
}

// Parse reads the content of the file. An error names the line and the key.
func Parse(b []byte) (Config, error) {
	if len(b) > maxSize {
		return Config{}, fault.Refusedf("it is longer than %d bytes", maxSize)
	}
	c, err := parse(b)
	var syntax toml.ParseError
	if err == nil || errors.As(err, &syntax) { // which says the line itself
		return c, err
	}
	return Config{}, fault.Refusedf("line %d: %w", lineOf(b, err), err)
}

// lineOf returns the first line with which the file is wrong in that way.
func lineOf(b []byte, wrong error) int {
	n := 0
	for end := range b {
		if b[end] != '\n' {
			continue
		}
		n++
		if _, err := parse(b[:end+1]); err != nil && err.Error() == wrong.Error() {
			return n
		}
	}
	return n + 1
}

func parse(b []byte) (Config, error) {
	var raw map[string]any
	if _, err := toml.Decode(string(b), &raw); err != nil {
		return Config{}, err
	}
	c := Config{Listen: []string{"[::]:7443"}}
	for _, key := range slices.Sorted(maps.Keys(raw)) {
		var err error
		switch key {
		case "listen":
			c.Listen, err = addresses(key, raw[key])
		case "repository_listen":
			c.RepositoryListen, err = addresses(key, raw[key])
		case "admission":
			c.Admission, err = policy(raw[key])
		default:
			err = fault.Refusedf("the key %q is not known", key)
		}
		if err != nil {
			return Config{}, err
		}
	}
	return c, nil
}

// addresses reads one "HOST:PORT" or a list of them.
func addresses(key string, v any) (out []string, err error) {
	switch l := v.(type) {
	case string:
		out = []string{l}
	case []any:
		for _, e := range l {
			s, ok := e.(string)
			if !ok {
				return nil, fault.Refusedf("%s: %v is not a string", key, e)
			}
			out = append(out, s)
		}
	default:
		return nil, fault.Refusedf("%s: is neither a string nor a list of strings", key)
	}
	if len(out) == 0 {
		return nil, fault.Refusedf("%s: is empty", key)
	}
	for _, l := range out {
		_, port, err := net.SplitHostPort(l)
		if err != nil {
			return nil, fault.Refusedf("%s: %q is not HOST:PORT", key, l)
		}
		if _, err := strconv.ParseUint(port, 10, 16); err != nil {
			return nil, fault.Refusedf("%s: %q has no port number", key, l)
		}
	}
	return out, nil
}
