package repository

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/goreleaser/nfpm/v2"
	"github.com/goreleaser/nfpm/v2/files"

	"github.com/nox-mesh/nox-mesh/release/internal/arch"
)

// BenchmarkPackSignAdd takes a program of 15 MB (this one, as often as it takes)
// all the way: packed, read back, signed, verified, in a repository, published.
func BenchmarkPackSignAdd(b *testing.B) {
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	program := bytes.Repeat(get(b, self), 4)[:15<<20]
	file := filepath.Join(b.TempDir(), "program")
	put(b, file, program)
	p := newPublisher(b)
	info := &nfpm.Info{
		Name: "program", Arch: "amd64", Version: "1.0.0", Description: "a program", License: "MIT", MTime: time.Unix(1700000000, 0), DisableGlobbing: true,
		Overridables: nfpm.Overridables{Contents: files.Contents{{Source: file, Destination: "/usr/bin/program", FileInfo: &files.ContentFileInfo{Mode: 0o755}}}},
	}
	b.SetBytes(int64(len(program)))
	for b.Loop() {
		dir := b.TempDir()
		m, err := arch.Write(b.Context(), dir, arch.Package{Info: info})
		if err != nil {
			b.Fatal(err)
		}
		p.sign(b, filepath.Join(dir, m.FileName()))
		repo := filepath.Join(dir, "repo")
		if _, err := Add(b.Context(), repo, []string{filepath.Join(dir, m.FileName())}, p.options()); err != nil {
			b.Fatal(err)
		}
		if _, err := Publish(b.Context(), repo, filepath.Join(dir, "www"), p.options()); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAddOneToAThousand(b *testing.B) {
	p := newPublisher(b)
	src, dir := b.TempDir(), filepath.Join(b.TempDir(), "repo")
	var packages []string
	for n := range 1000 {
		packages = append(packages, p.pack(b, src, "p"+time.Unix(int64(n), 0).UTC().Format("150405"), "1-1", "any", ""))
	}
	if _, err := Add(b.Context(), dir, packages, p.options()); err != nil {
		b.Fatal(err)
	}
	n := 1
	for b.Loop() {
		n++
		v := time.Unix(int64(n), 0).UTC().Format("150405") + "-1"
		if _, err := Add(b.Context(), dir, []string{p.pack(b, src, "p000000", "1"+v, "any", "")}, p.options()); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkBesideRepoAdd makes a repository of signed packages, each of which is
// verified, and has repo-add, which verifies none, make the same once, in one run:
//
//	go test -run '^$' -bench BesideRepoAdd/1000 -benchtime 1x ./release/internal/repository
func BenchmarkBesideRepoAdd(b *testing.B) {
	for _, n := range []int{100, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) { besideRepoAdd(b, n) })
	}
}

func besideRepoAdd(b *testing.B, n int) {
	tool, err := exec.LookPath("repo-add")
	if err != nil {
		b.Skip("repo-add is not here")
	}
	p := newPublisher(b)
	src := b.TempDir()
	var packages []string
	for i := range n {
		packages = append(packages, p.pack(b, src, fmt.Sprintf("p%d", i), "1.0-1", "any", strings.Repeat("content ", i)))
	}
	o := p.options()
	o.MD5 = true
	var ours time.Duration
	for b.Loop() {
		start := time.Now()
		mustAdd(b, filepath.Join(b.TempDir(), "repo"), o, packages...)
		ours = time.Since(start)
	}
	b.StopTimer()
	start := time.Now()
	args := append([]string{"-q", filepath.Join(b.TempDir(), "nox-mesh.db.tar.zst")}, packages...)
	if out, err := exec.Command(tool, args...).CombinedOutput(); err != nil {
		b.Fatalf("repo-add: %v\n%s", err, out)
	}
	theirs := time.Since(start)
	version, err := exec.Command(tool, "--version").Output()
	if err != nil {
		b.Fatal(err)
	}
	line, _, _ := strings.Cut(string(version), "\n")
	b.Logf("%d packages: this %.2f s, %s %.2f s", n, ours.Seconds(), line, theirs.Seconds())
	b.ReportMetric(theirs.Seconds()/ours.Seconds(), "times-as-fast")
}
