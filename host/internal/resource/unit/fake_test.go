package unit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/nox-mesh/nox-mesh/internal/layout"
)

// fake is systemd as far as it is asked here, over the files below a root. What
// it knows it keeps in a file beside the root, so that it outlives the process.
type fake struct {
	l  layout.Layout
	mu sync.Mutex
	// hook, if set, stands in for what systemd says of a unit, or of a job.
	hook   func(unit string, s *status)
	result func(v verb, unit string) string
}

type memory struct {
	Loaded  map[string]string // what was read, by unit
	Running map[string]string // what it runs
}

func (f *fake) memory(change func(*memory)) memory {
	f.mu.Lock()
	defer f.mu.Unlock()
	m := memory{map[string]string{}, map[string]string{}}
	b, err := os.ReadFile(f.l.Root + ".systemd")
	if err == nil {
		err = json.Unmarshal(b, &m)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		panic(err)
	}
	if change != nil {
		change(&m)
		b, _ := json.Marshal(m)
		temp := f.l.Root + ".systemd.tmp"
		if err := errors.Join(os.WriteFile(temp, b, 0o600), os.Rename(temp, f.l.Root+".systemd")); err != nil {
			panic(err)
		}
	}
	return m
}

// text is all that systemd reads of a unit.
func (f *fake) text(unit string) (text string) {
	for _, dir := range []string{"/etc/systemd/system", "/usr/lib/systemd/system"} {
		file := f.l.Path(dir + "/" + unit)
		if target, err := os.Readlink(file); err == nil {
			text = "-> " + target
			break
		}
		if b, err := os.ReadFile(file); err == nil {
			text = dir + "\n" + string(b)
			break
		}
	}
	for _, dir := range []string{"/etc/systemd/system", "/run/systemd/system"} {
		all, _ := filepath.Glob(f.l.Path(dir + "/" + unit + ".d/*.conf"))
		for _, file := range all {
			b, _ := os.ReadFile(file)
			text += "\n# " + file + "\n" + string(b)
		}
	}
	return text
}

func (f *fake) look(_ context.Context, unit string) (status, error) {
	m := f.memory(nil)
	now, run := f.text(unit), m.Running[unit]
	known, loaded := m.Loaded[unit]
	if !loaded && run == "" {
		known = now // it is read when it is asked for
	}
	s := status{ID: unit, Names: []string{unit}, Load: "loaded", Active: "inactive", Sub: "dead", NeedReload: known != now}
	switch {
	case strings.HasPrefix(known, "-> /dev/null"):
		s.Load = "masked"
	case !strings.HasPrefix(known, "/"):
		s.Load = "not-found"
	default:
		s.Fragment = strings.SplitN(known, "\n", 2)[0] + "/" + unit
	}
	if run != "" {
		s.Active, s.Sub = "active", "running"
	}
	if f.hook != nil {
		f.hook(unit, &s)
	}
	return s, nil
}

func (f *fake) wanted(unit string) (links []string) {
	for _, line := range strings.Split(f.text(unit), "\n") {
		if target, ok := strings.CutPrefix(line, "WantedBy="); ok {
			links = append(links, "/etc/systemd/system/"+target+".wants/"+unit)
		}
	}
	return links
}

func (f *fake) fileState(_ context.Context, unit string) (string, error) {
	text := f.text(unit)
	switch {
	case strings.HasPrefix(text, "-> /dev/null"):
		return "masked", nil
	case !strings.HasPrefix(text, "/"):
		return "", nil
	}
	if all, _ := filepath.Glob(f.l.Path("/etc/systemd/system/*.wants/" + unit)); len(all) > 0 {
		return "enabled", nil
	}
	if len(f.wanted(unit)) == 0 {
		return "static", nil
	}
	return "disabled", nil
}

func (f *fake) enable(_ context.Context, unit string, _ bool) (made []string, err error) {
	for _, link := range f.wanted(unit) {
		file := f.l.Path(link)
		if _, err := os.Lstat(file); err == nil {
			continue
		}
		err = errors.Join(err, os.MkdirAll(filepath.Dir(file), 0o755), os.Symlink("/etc/systemd/system/"+unit, file))
		made = append(made, link)
	}
	return made, err
}

func (f *fake) disable(_ context.Context, unit string, _ bool) (gone []string, err error) {
	if state, _ := f.fileState(context.Background(), unit); state == "" {
		return nil, fmt.Errorf("unit file %s does not exist", unit)
	}
	all, _ := filepath.Glob(f.l.Path("/etc/systemd/system/*.wants/" + unit))
	for _, file := range all {
		gone = append(gone, strings.TrimPrefix(file, f.l.Root))
		err = errors.Join(err, os.Remove(file))
	}
	return gone, err
}

func (f *fake) reload(context.Context) error {
	f.memory(func(m *memory) {
		clear(m.Loaded)
		for unit := range m.Running {
			m.Loaded[unit] = f.text(unit)
		}
	})
	return nil
}

func (f *fake) job(_ context.Context, v verb, unit string) (string, error) {
	if f.result != nil {
		if r := f.result(v, unit); r != "" {
			return r, nil
		}
	}
	f.memory(func(m *memory) {
		if v == stop {
			delete(m.Running, unit)
			return
		}
		if m.Loaded[unit] == "" {
			m.Loaded[unit] = f.text(unit)
		}
		m.Running[unit] = m.Loaded[unit]
	})
	return "done", nil
}

func (f *fake) resetFailed(_ context.Context, unit string) error {
	return nil
}
