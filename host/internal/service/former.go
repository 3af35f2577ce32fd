package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/nox-mesh/nox-mesh/host/link"
	"github.com/nox-mesh/nox-mesh/host/link/client"
	"github.com/nox-mesh/nox-mesh/internal/durable"
)

// A former is what this host owned before it lost its store, as the control plane
// remembers it: the keys. It is a file beside the store, since a store that is lost
// cannot say so. A thing leaves it when the host owns it again.
type former struct {
	mu   sync.Mutex
	path string
	keys map[string]bool
}

type formerFile struct {
	Keys []string `json:"keys"`
}

// askTime is how long the control plane may take to say what was owned.
const askTime = 15 * time.Second

func formerAt(state string) *former { return &former{path: filepath.Join(state, "former.json")} }

// has says whether a thing was owned.
func (f *former) has(key string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.keys[key]
}

// read takes up what an earlier service wrote down. A file that cannot be read is
// one that says nothing: what it would have said is asked again, or stays unowned.
func (f *former) read() error {
	b, err := os.ReadFile(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var file formerFile
	if err == nil {
		err = json.Unmarshal(b, &file)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.keys = map[string]bool{}
	for _, k := range file.Keys {
		f.keys[k] = true
	}
	return err
}

// learn writes down what was owned.
func (f *former) learn(keys []string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := map[string]bool{}
	for k := range f.keys {
		all[k] = true
	}
	for _, k := range keys {
		all[k] = true
	}
	return f.write(all)
}

// owned strikes out what is owned again.
func (f *former) owned(keys []string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	left := map[string]bool{}
	for k := range f.keys {
		left[k] = true
	}
	for _, k := range keys {
		delete(left, k)
	}
	if len(left) == len(f.keys) {
		return nil
	}
	return f.write(left)
}

// forget lets go of all of it: the machine is another node, or none.
func (f *former) forget() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.write(nil)
}

func (f *former) write(keys map[string]bool) error {
	var err error
	if len(keys) == 0 {
		err = durable.Remove(f.path)
	} else {
		var b []byte
		var list []string
		for k := range keys {
			list = append(list, k)
		}
		slices.Sort(list)
		if b, err = json.Marshal(formerFile{list}); err == nil {
			err = durable.WriteFile(f.path, append(b, '\n'), 0o600)
		}
	}
	if err == nil {
		f.keys = keys
	}
	return err
}

// recall asks what this node owned, before the first declaration that its store is to
// hold: with a store that was lost, what is there and as declared would count as
// somebody's otherwise, and would stay for ever when it is declared no more.
func (s *Service) recall(ctx context.Context, l *client.Client) error {
	now, err := s.store.About()
	if err != nil || now != nil && now.Node == s.node() || l == nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	a, err := l.Unowned(ctx)
	if link.CodeOf(err) == link.Refused {
		return nil // a control plane of before there was such a question
	}
	if err == nil {
		err = s.lost(a.Keys)
	}
	if err != nil {
		return fmt.Errorf("cannot find out what this node owned before: %w", err)
	}
	return nil
}

// lost writes down what of the keys the store has no record of.
func (s *Service) lost(keys []string) error {
	records, err := s.store.Records()
	if err != nil {
		return err
	}
	owned := map[string]bool{}
	for _, r := range records {
		owned[r.Key] = true
	}
	keys = slices.DeleteFunc(keys, func(k string) bool { return owned[k] })
	if len(keys) == 0 {
		return nil
	}
	s.Log.Warn("this node owned things that its store does not know of: they are its own again where they are declared", "things", len(keys))
	return s.former.learn(keys)
}

// ownedAgain strikes out of the former what a pass made the host's own.
func (s *Service) ownedAgain() {
	if !s.former.any() {
		return
	}
	records, err := s.store.Records()
	if err == nil {
		var keys []string
		for _, r := range records {
			keys = append(keys, r.Key)
		}
		err = s.former.owned(keys)
	}
	if err != nil {
		s.Log.Warn("what is owned again is still written down as lost", "cause", err)
	}
}

func (f *former) any() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.keys) > 0
}
