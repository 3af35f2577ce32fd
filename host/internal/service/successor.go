package service

import (
	"context"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/host/internal/launcher"
	"github.com/nox-mesh/nox-mesh/host/internal/replace"
	"github.com/nox-mesh/nox-mesh/host/link"
	"github.com/nox-mesh/nox-mesh/internal/child"
	"github.com/nox-mesh/nox-mesh/internal/version"
)

// self is what the service knows of the program it is. But for replaced, and what of
// watch never changes, it is for the passes and what comes after each (loop.After).
type self struct {
	// watch notices that the binary was replaced; nil when that cannot be seen.
	watch *replace.Watch
	// replaced is closed when it was, and the pass is recorded and answered. leaving
	// says that it was, left that replaced is closed.
	replaced      chan struct{}
	leaving, left bool
	// version is what the binary of the digest says of itself.
	digest  digest.Digest
	version string
}

// watchSelf begins to look for a new binary. A host that runs from the
// launcher's own copy, because the installed one cannot live, waits for
// another one to be installed.
func (s *Service) watchSelf() {
	given := launcher.Given(s.Layout.Launcher())
	own, err := replace.Running(replace.Config{Given: given, Elsewhere: s.binaries(), Refused: s.refused})
	if err != nil {
		s.Log.Error("a new binary will not be noticed", "cause", err)
		return
	}
	s.self.watch = own
	if given != "" {
		s.Log.Warn("running from the launcher's copy: what is installed cannot live", "installed", given)
		return
	}
	if err := launcher.Introduce(s.Layout.LauncherDir(), version.Running()); err != nil {
		s.Log.Error("the launcher does not hear which version this is", "cause", err)
	}
}

// binaries are where a host may be installed.
func (s *Service) binaries() []string {
	var out []string
	for _, prefix := range s.Layout.Prefixes() {
		out = append(out, s.Layout.HostBinary(prefix))
	}
	return out
}

// lookAtSelf looks, after the pass and its record and never within, whether the
// binary was replaced.
func (s *Service) lookAtSelf() {
	if s.self.watch == nil || s.self.leaving {
		return
	}
	replaced, err := s.self.watch.Replaced()
	if err != nil {
		s.Log.Error("own binary", "cause", err)
		return
	}
	if replaced {
		s.Log.Info("the binary was replaced: ending, so that the new one is started", "running", version.Running(), "path", s.self.watch.Path())
		s.self.leaving = true
	}
}

// leave ends the service when its binary was replaced, once those who wait for the
// pass that did it have been answered.
func (s *Service) leave() {
	if s.self.leaving && !s.self.left {
		s.self.left = true
		close(s.self.replaced)
	}
}

// installed is the version of what lies where this host is started from, or its
// digest when it does not say; "" when it is what runs. What is installed is asked
// once for each content, and what was given up is not started for that.
func (s *Service) installed(ctx context.Context) string {
	if s.self.watch == nil {
		return ""
	}
	sum, err := s.self.watch.Installed()
	if err != nil || sum == s.self.watch.Digest() {
		return ""
	}
	if s.self.digest == sum {
		return s.self.version
	}
	s.self.digest, s.self.version = sum, sum.String()
	if failed := s.failed(); failed != nil && failed.Digest == sum.String() {
		if failed.Version != "" {
			s.self.version = failed.Version
		}
		return s.self.version
	}
	res, err := child.Run(ctx, child.Command{Path: s.self.watch.Path(), Args: []string{"version"}, Timeout: versionTime})
	if words := strings.Fields(string(res.Stdout)); err == nil && len(words) > 1 {
		s.self.version = words[1] // "mesh-host 1.1.0 …"
	}
	return s.self.version
}

// versionTime is how long a program may take to say its version.
const versionTime = 5 * time.Second

// sayInstalled completes a report with the version that is installed, when it is
// not the one that runs.
func (s *Service) sayInstalled(ctx context.Context, r *link.Report) {
	v := s.installed(ctx)
	if v == version.Running() {
		v = "" // built anew, and nothing to tell them apart by
	}
	s.mu.Lock()
	s.other = v
	s.mu.Unlock()
	r.Installed = v
}

// refused is the digest of the host that failed here, or "".
func (s *Service) refused() digest.Digest {
	if failed := s.failed(); failed != nil {
		return digest.Digest(failed.Digest)
	}
	return ""
}
