package bundle

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

const total = 1 << 30

// A work is what one program does with the bundle, in a folder that is empty
// before and removed after.
type work struct {
	name, version string
	argv          []string
	// file is what comes from the pipe, the bundle when it is "".
	file string
	// own takes the time from what the program prints: mesh-host applies the
	// declaration as well, which is not what is measured here.
	own *regexp.Regexp
}

func run(b *testing.B, dir string, argv ...string) string {
	b.Helper()
	c := exec.Command(argv[0], argv[1:]...)
	c.Dir = dir
	out, err := c.CombinedOutput()
	if err != nil {
		b.Fatalf("%s: %v\n%s", strings.Join(argv, " "), err, out)
	}
	return string(out)
}

func firstLine(b *testing.B, argv ...string) string {
	line, _, _ := strings.Cut(run(b, "", argv...), "\n")
	return strings.TrimSpace(line)
}

// made makes the programs, the keys and a bundle of so many blobs in dir.
func made(b *testing.B, dir string, blobs int) {
	b.Helper()
	top, err := filepath.Abs("../../..")
	if err != nil {
		b.Fatal(err)
	}
	b.Setenv("CGO_ENABLED", "0")
	run(b, top, "go", "build", "-o", dir, "./host/cmd/mesh-host", "./release/cmd/mesh-release")
	put := func(name string, r io.Reader) {
		f, err := os.Create(filepath.Join(dir, name))
		if err == nil {
			_, err = io.Copy(f, r)
			f.Close()
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	recipe, resources := "name = \"heavy\"\ndeclarations = [\"heavy.json\"]\n", []string{}
	for i := range blobs {
		n := fmt.Sprint("noise", i)
		put(n, io.LimitReader(rand.NewChaCha8([32]byte{byte(i)}), total/int64(blobs)))
		recipe += fmt.Sprintf("[[file]]\ntitle = %q\npath = %q\n", n, n)
		resources = append(resources, fmt.Sprintf(`{"id": %q, "type": "file", "path": "/opt/%s", "source": "file:%s"}`, n, n, n))
	}
	put("bundle.toml", strings.NewReader(recipe))
	put("heavy.json", strings.NewReader(`{"schema": 1, "name": "heavy", "generation": "counter", "resources": [`+strings.Join(resources, ",")+`]}`))
	put("passphrase", strings.NewReader("correct horse"))
	b.Setenv("NOX_PASSPHRASE_FILE", filepath.Join(dir, "passphrase"))
	run(b, dir, "./mesh-release", "keys", "init", "keys")
	arch := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
	run(b, dir, "./mesh-release", "bundle", "create", "bundle.toml", "--version", "1", "--arch", arch, "--counter", "1", "--keys", "keys", "--out", "b.tar")
	for i := range blobs {
		if err := os.Remove(filepath.Join(dir, fmt.Sprint("noise", i))); err != nil {
			b.Fatal(err)
		}
	}
}

// once does a work with the bundle coming from a pipe, and returns seconds and MiB.
func once(b *testing.B, dir string, w work) (seconds, mib float64) {
	b.Helper()
	into := filepath.Join(dir, "into")
	if err := os.MkdirAll(filepath.Join(into, "var/lib/nox-mesh"), 0o700); err != nil {
		b.Fatal(err)
	}
	defer os.RemoveAll(into)
	syscall.Sync() // nobody pays for the one before
	cat := exec.Command("cat", filepath.Join(dir, cmp.Or(w.file, "b.tar")))
	c := exec.Command(w.argv[0], w.argv[1:]...)
	c.Dir = dir
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	pipe, err := cat.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	c.Stdin = pipe
	began := time.Now()
	if err := cat.Start(); err != nil {
		b.Fatal(err)
	}
	err = c.Run()
	seconds = time.Since(began).Seconds()
	pipe.Close()
	_ = cat.Wait() // ended by a closed pipe where the work reads the file itself
	if err != nil {
		b.Fatalf("%s: %v\n%s", w.name, err, out.String())
	}
	if w.own != nil {
		m := w.own.FindSubmatch(out.Bytes())
		if m == nil {
			b.Fatalf("%s does not say how long it took:\n%s", w.name, out.String())
		}
		seconds, _ = strconv.ParseFloat(string(m[1]), 64)
	}
	return seconds, float64(c.ProcessState.SysUsage().(*syscall.Rusage).Maxrss) / 1024
}

func BenchmarkOneGiBFromAPipe(b *testing.B) {
	for _, p := range []string{"skopeo", "tar", "sha256sum", "openssl"} {
		if _, err := exec.LookPath(p); err != nil {
			b.Skipf("%s is not here", p)
		}
	}
	for _, blobs := range []int{1, 64} {
		b.Run(fmt.Sprint(blobs), func(b *testing.B) {
			dir := b.TempDir()
			made(b, dir, blobs)
			works := []work{
				{"mesh-host bootstrap", firstLine(b, filepath.Join(dir, "mesh-host"), "version"),
					[]string{"./mesh-host", "--root", "into", "bootstrap", "--trust", "keys", "-"}, "",
					regexp.MustCompile(`(?m)^verified .* in ([0-9.]+) s$`)},
				{"SHA-256 of the pipe (openssl)", firstLine(b, "openssl", "version"), []string{"openssl", "dgst", "-sha256"}, "", nil},
				{"tar -x, sha256sum", firstLine(b, "tar", "--version"), []string{"sh", "-c", "tar -xf - -C into && sha256sum into/blobs/sha256/*"}, "", nil},
				{"tar -x, sync, sha256sum", firstLine(b, "tar", "--version"), []string{"sh", "-c", "tar -xf - -C into && sync -f into && sha256sum into/blobs/sha256/*"}, "", nil},
				{"skopeo copy (from the file)", firstLine(b, "skopeo", "--version"), []string{"skopeo", "copy", "--quiet", "--all", "oci-archive:b.tar:bundle", "oci:into:x"}, "", nil},
			}
			if w, ok := podman(b, dir); ok {
				works = append(works, w)
			}
			times, rss := make([][]float64, len(works)), make([]float64, len(works))
			rounds := 0
			for b.Loop() {
				rounds++
				for i, w := range works {
					s, m := once(b, dir, w)
					times[i], rss[i] = append(times[i], s), max(rss[i], m)
				}
			}
			load, _ := os.ReadFile("/proc/loadavg")
			fmt.Printf("\n1 GiB in %d blobs, median of %d, load %s", blobs, rounds, load)
			fmt.Printf("%-30s %8s %8s %8s  %s\n", "", "s", "ratio", "MiB", "version")
			median := func(i int) float64 { slices.Sort(times[i]); return times[i][len(times[i])/2] }
			for i, w := range works {
				fmt.Printf("%-30s %8.2f %8.2f %8.0f  %s\n", w.name, median(i), median(i)/median(0), rss[i], w.version)
			}
			b.ReportMetric(median(0), "s/GiB")
		})
	}
}
