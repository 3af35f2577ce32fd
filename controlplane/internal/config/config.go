// Package config is the operator's file of the control plane,
// /etc/nox-mesh/controller.toml. No bundle declares it and the control plane
// never writes it.
//
//	listen = ["[::]:7443"]              # where nodes connect; one string is fine too
//	repository_listen = "[::]:7480"     # where machines that are no nodes yet fetch
//	                                    # packages and the floor, by plain HTTP; without
//	                                    # it nobody does
//
// A key that is not known is refused: a misspelled one must not be a silent
// default. A file that is not there means the defaults.
package config

import (
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"strconv"

	"github.com/BurntSushi/toml"

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

// Parse reads the content of the file.
func Parse(b []byte) (Config, error) {
	if len(b) > maxSize {
		return Config{}, fault.Refusedf("it is longer than %d bytes", maxSize)
	}
	var raw struct {
		Listen           any `toml:"listen"`
		RepositoryListen any `toml:"repository_listen"`
	}
	m, err := toml.Decode(string(b), &raw)
	if err != nil {
		return Config{}, err
	}
	if unknown := m.Undecoded(); len(unknown) > 0 {
		return Config{}, fault.Refusedf("the key %q is not known", unknown[0].String())
	}
	c := Config{Listen: []string{"[::]:7443"}}
	for _, l := range []struct {
		key string
		raw any
		to  *[]string
	}{{"listen", raw.Listen, &c.Listen}, {"repository_listen", raw.RepositoryListen, &c.RepositoryListen}} {
		if l.raw == nil {
			continue
		}
		if *l.to, err = addresses(l.raw); err != nil {
			return Config{}, fault.Refusedf("%s: %w", l.key, err)
		}
	}
	return c, nil
}

// addresses reads one "HOST:PORT" or a list of them.
func addresses(raw any) (out []string, err error) {
	switch l := raw.(type) {
	case string:
		out = []string{l}
	case []any:
		for _, e := range l {
			s, ok := e.(string)
			if !ok {
				return nil, fault.Refusedf("%v is not a string", e)
			}
			out = append(out, s)
		}
	default:
		return nil, fault.Refusedf("is neither a string nor a list of strings")
	}
	if len(out) == 0 {
		return nil, fault.Refusedf("is empty")
	}
	for _, l := range out {
		_, port, err := net.SplitHostPort(l)
		if err != nil {
			return nil, fault.Refusedf("%q is not HOST:PORT", l)
		}
		if _, err := strconv.ParseUint(port, 10, 16); err != nil {
			return nil, fault.Refusedf("%q has no port number", l)
		}
	}
	return out, nil
}
