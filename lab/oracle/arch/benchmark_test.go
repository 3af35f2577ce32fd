package arch

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nox-mesh/nox-mesh/lab/oracle/tool"
)

// BenchmarkPacmanReadsAPackage is `pacman -Qip` of a package of 34 MB that does
// not compress: ours, and one that makepkg made of the same file, in turn.
//
//	go test -run '^$' -bench PacmanReads ./lab/oracle/arch
func BenchmarkPacmanReadsAPackage(b *testing.B) {
	needs(b, "pacman", "makepkg", "fakeroot", "bsdtar", "unshare", "zstd", "go")
	dir := b.TempDir()
	noise := filepath.Join(dir, "noise")
	must(b, "/", nil, "dd", "if=/dev/urandom", "of="+noise, "bs=1M", "count=34", "status=none")
	ours := packNfpm(b, b.TempDir(), "name: big\narch: all\nversion: 1.0.0\nmtime: 2023-11-14T22:13:20Z\ncontents:\n- {src: "+noise+", dst: /usr/share/big}\n")
	file(b, filepath.Join(dir, "PKGBUILD"), "pkgname=big\npkgver=1.0.0\npkgrel=1\narch=(any)\npackage() {\n\tinstall -Dm644 \"$startdir/noise\" \"$pkgdir/usr/share/big\"\n}\n")
	theirs := filepath.Join(makepkg(b, dir), filepath.Base(ours))
	version := tool.Version(b, "pacman")
	took := map[string]time.Duration{}
	rounds := 0
	for b.Loop() {
		rounds++
		for _, p := range []string{ours, theirs} {
			start := time.Now()
			must(b, "/", nil, "pacman", "-Qip", p)
			took[p] += time.Since(start)
		}
	}
	each := func(p string) time.Duration { return took[p] / time.Duration(rounds) }
	b.ReportMetric(float64(each(ours).Milliseconds()), "ms-ours")
	b.ReportMetric(float64(each(theirs).Milliseconds()), "ms-makepkg's")
	b.ReportMetric(each(ours).Seconds()/each(theirs).Seconds(), "ratio")
	b.Logf("pacman %s -Qip: ours %v, makepkg's %v; load %s", version, each(ours), each(theirs), strings.Fields(fmt.Sprint(read(b, "/proc/loadavg")))[0])
}
