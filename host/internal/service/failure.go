package service

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/host/internal/launcher"
	"github.com/nox-mesh/nox-mesh/internal/child"
	"github.com/nox-mesh/nox-mesh/internal/durable"
	"github.com/nox-mesh/nox-mesh/internal/input"
	"github.com/nox-mesh/nox-mesh/internal/version"
	"github.com/nox-mesh/nox-mesh/pkgbuild"
)

// A FailedHost is a version of the host that could not live here. It is held
// back until another one proves itself.
type FailedHost struct {
	// Digest is that of its binary.
	Digest string `json:"digest"`
	// Version is what it said of itself, or what it was installed as, if either is
	// known.
	Version string `json:"version,omitempty"`
	// Starts is how often it was tried, Why how it was given up, Ends how the last
	// tries ended in the words of the service manager.
	Starts int       `json:"starts"`
	Why    string    `json:"why"`
	At     time.Time `json:"at"`
	Ends   []string  `json:"ends,omitempty"`
	// Back: the version before it was put in its place.
	Back bool `json:"back"`
	// Packages are those that it came with, if they are known.
	Packages []FailedPackage `json:"packages,omitempty"`
	// Words are the lines of its last run, the first and the last of many.
	Words []string `json:"words,omitempty"`
}

// A FailedPackage is a package with a host in it that failed: its version, and the
// digest of its file where that was declared.
type FailedPackage struct {
	Version string        `json:"version"`
	Source  digest.Digest `json:"source,omitempty"`
}

// held says why it is not taken again.
func (f *FailedHost) held() string {
	name, _, _ := strings.Cut(f.Digest, ":")
	name = fmt.Sprintf("a version (%s)", f.Digest[:min(len(f.Digest), len(name)+13)])
	if f.Version != "" {
		name = "version " + f.Version
	}
	times := "once"
	if f.Starts != 1 {
		times = fmt.Sprintf("%d times", f.Starts)
	}
	why := f.Why
	if len(f.Ends) > 0 {
		why += "; in the end it " + endWords(f.Ends[len(f.Ends)-1])
	}
	return fmt.Sprintf("%s failed here %s (%s), and is held back until another is declared; version %s runs", name, times, why, version.Running())
}

// endWords say how a start ended, of what the service manager calls it
// (RESULT/CODE/STATUS; systemd.exec(5), $SERVICE_RESULT).
func endWords(end string) string {
	result, rest, _ := strings.Cut(end, "/")
	_, status, _ := strings.Cut(rest, "/")
	switch result {
	case "exit-code":
		return "exited with " + status
	case "signal", "core-dump":
		return "was killed by SIG" + status
	case "timeout":
		return "was not ready in time"
	case "watchdog":
		return "was not heard of for too long"
	case "protocol":
		return "left before it was ready"
	case "success":
		return "left by itself"
	}
	return "ended so: " + end
}

// lastWord is the one of its last lines that says most: what Go says of a panic or
// a signal comes before many that say where.
func (f *FailedHost) lastWord() string {
	word := ""
	for _, line := range f.Words {
		word = line
		if slices.ContainsFunc([]string{"panic: ", "fatal error: ", "SIG"}, func(p string) bool { return strings.HasPrefix(line, p) }) {
			break
		}
	}
	return word
}

// noted is failed.json: what the launcher cannot find out of what failed. It lies
// beside the launcher's state.
type noted struct {
	Digest  string    `json:"digest"`
	At      time.Time `json:"at"`
	Version string    `json:"version,omitempty"`
	// Packages are all that this binary came with: it may be packed anew.
	Packages []FailedPackage `json:"packages,omitempty"`
	Words    []string        `json:"words,omitempty"`
}

func (s *Service) notedFile() string { return filepath.Join(s.Layout.LauncherDir(), "failed.json") }

// readPaper reads failed.json or proven.json; ok is false where there is none that
// can be read.
func readPaper(path string, v any) (ok bool) {
	b, err := input.ReadFile(path, 64<<10)
	return err == nil && json.Unmarshal(b, v) == nil
}

func writePaper(path string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return durable.WriteFile(path, append(b, '\n'), 0o600)
}

// failed is the version of the host that failed here, or nil.
func (s *Service) failed() *FailedHost {
	state, _ := launcher.Read(s.Layout.LauncherDir()) // a damaged one knows of none
	f := state.Failed
	if f == nil {
		return nil
	}
	out := &FailedHost{Digest: f.Digest, Version: f.Version, Starts: f.Starts, Why: f.Why, At: f.At, Ends: f.Ends, Back: f.Back}
	var n noted
	if readPaper(s.notedFile(), &n) && n.Digest == f.Digest {
		out.Packages, out.Words = n.Packages, n.Words
		if out.Version == "" {
			out.Version = n.Version
		}
	}
	return out
}

// failedFile says why a file is not to have the content: as the program at that
// path, the host itself or that of a process, it failed here. It is "" when it did
// not.
func (s *Service) failedFile(path string, sum digest.Digest) string {
	if slices.Contains(s.binaries(), s.Layout.Path(path)) {
		if f := s.failed(); f != nil && f.Digest == sum.String() {
			return f.held()
		}
	}
	return s.processes.Failed(path, sum)
}

// failedPackage says why the host's own package is not to be installed: the
// binary in it failed here.
func (s *Service) failedPackage(version string, source digest.Digest) string {
	f := s.failed()
	if f == nil {
		return ""
	}
	for _, p := range f.Packages {
		if p.is(version, source) {
			return f.held()
		}
	}
	// What is registered has it, and that is not noted yet, or could not be.
	if registered, binary, err := s.packages.Registered(); err == nil && binary.String() == f.Digest && registered == version {
		return f.held()
	}
	return ""
}

// is reports whether it is the one of that version, or from that source where both
// are known: a package may be built anew as the same version.
func (p FailedPackage) is(version string, source digest.Digest) bool {
	if source != "" && p.Source != "" {
		return source == p.Source
	}
	return version == p.Version
}

// afterFailure is done once, before the first pass: what is still known of the
// version that failed is written down, and the package database is made to say
// what runs.
func (s *Service) afterFailure(ctx context.Context) {
	f := s.failed()
	if f == nil || !s.served {
		return
	}
	registered, binary, err := s.packages.Registered()
	if err != nil {
		s.Log.Warn("cannot tell which package the failed host is of", "cause", err)
	}
	var n noted
	if !readPaper(s.notedFile(), &n) || n.Digest != f.Digest {
		n = noted{Digest: f.Digest}
	}
	before := len(n.Packages)
	if binary.String() == f.Digest {
		p := FailedPackage{Version: registered, Source: s.sourceOf(registered)}
		if !slices.Contains(n.Packages, p) {
			n.Packages = append(n.Packages, p)
		}
		n.Version, _, _ = strings.Cut(registered, "-")
	}
	noteworthy := !n.At.Equal(f.At) || len(n.Packages) != before
	if !n.At.Equal(f.At) {
		n.At, n.Words = f.At, s.lastWords(ctx)
	}
	if noteworthy {
		if err := writePaper(s.notedFile(), n); err != nil {
			// As long as it is registered, it is held by that.
			s.Log.Error("what is known of the failed host cannot be kept, and its package stays registered", "cause", err)
			return
		}
	}
	if f = s.failed(); f == nil {
		return // its state was damaged meanwhile
	}
	s.Log.Error("a version of this host failed here", "version", f.Version, "digest", f.Digest, "starts", f.Starts, "cause", f.Why)
	if binary.String() == f.Digest && f.Back {
		if err := s.putBackPackage(ctx); err != nil {
			s.Log.Error("the package database says another version than runs", "registered", registered, "running", version.Running(), "cause", err)
		}
	}
}

// sourceOf is what was declared as the source of the host's package in this
// version, or "".
func (s *Service) sourceOf(version string) digest.Digest {
	if p := s.declaredPackage(); p != nil && (p.Version == "" || p.Version == version) {
		return p.Source
	}
	return ""
}

// declaredPackage is the host's own package as it was applied, or nil.
func (s *Service) declaredPackage() *declaration.Package {
	records, err := s.store.Records()
	if err != nil {
		return nil
	}
	for _, r := range records {
		if r.Key == hostPackage {
			if was, err := declaration.FromSpec(r.ID, r.Spec); err == nil {
				return was.Package
			}
		}
	}
	return nil
}

// hostPackage is the key of the host's own package.
const hostPackage = string(declaration.TypePackage) + ":" + pkgbuild.HostPackage

// lastWords are the last lines of the version that failed, of its last run in
// the journal; nil where there is none.
func (s *Service) lastWords(ctx context.Context) []string {
	state, err := launcher.Read(s.Layout.LauncherDir())
	if err != nil || state.Failed == nil || len(state.Failed.Runs) == 0 || !s.Layout.IsMachine() {
		return nil
	}
	program, runs := journalProgram(), state.Failed.Runs
	if program == "" {
		return nil
	}
	res, _ := child.Run(ctx, child.Command{ // what it printed counts, however it ended
		Path: program, Timeout: 10 * time.Second, MaxOutput: 1 << 20,
		Args: []string{"--no-pager", "--quiet", "--output=cat", "--lines=2000", "_SYSTEMD_INVOCATION_ID=" + runs[len(runs)-1]},
	})
	var words []string
	for line := range strings.Lines(string(res.Stdout)) {
		if len(line) > 500 {
			line = line[:500]
		}
		words = append(words, strings.ToValidUTF8(strings.TrimRight(line, "\n"), "\uFFFD"))
	}
	// What Go says of a crash comes first, and is followed by much that says where.
	if len(words) > 2*mostWords {
		words = append(append(words[:mostWords:mostWords], "…"), words[len(words)-mostWords:]...)
	}
	return words
}

// mostWords is how many of the first lines of a run are kept, and of the last.
const mostWords = 20

// failureWarnings are what a person should know of the version that failed.
func (s *Service) failureWarnings(f *FailedHost) []string {
	if f == nil {
		return nil
	}
	said := f.held()
	if word := f.lastWord(); word != "" {
		said += fmt.Sprintf("; the last that it said: %q", word)
	}
	out := []string{said}
	if !f.Back {
		out = append(out, "the version before it could not be put back in its place, and runs from the launcher's copy: is the disk full, or read-only?")
	}
	if registered, binary, err := s.packages.Registered(); err == nil && binary.String() == f.Digest && f.Back {
		out = append(out, fmt.Sprintf("the package database says that nox-mesh-host is %s, which is not what runs: the package of version %s could not be installed again",
			registered, version.Running()))
	}
	return out
}
