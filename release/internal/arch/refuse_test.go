package arch

import (
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/goreleaser/nfpm/v2/files"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

func TestBadPackagesAreRefused(t *testing.T) {
	at := func(destination string) func(*Package) {
		return func(p *Package) {
			p.Info.Contents = files.Contents{{Source: p.Info.Contents[0].Source, Destination: destination}}
		}
	}
	file := func(set func(*files.Content)) func(*Package) {
		return func(p *Package) { set(p.Info.Contents[0]) }
	}
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o644); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		spoil func(*Package)
		says  string
	}{
		"in /lib":             {at("/lib/systemd/x"), "/lib"},
		"in /bin":             {at("/bin/x"), "/bin"},
		"in /usr/lib64":       {at("/usr/lib64/x"), "/usr/lib64"},
		"in /usr/local":       {at("/usr/local/bin/x"), "/usr/local"},
		"in /var/run":         {at("/var/run/x"), "/var/run"},
		"in /run":             {at("/run/x"), "/run"},
		"metadata":            {at("/.PKGINFO"), "metadata"},
		"hidden at the top":   {at("/.x/y"), "metadata"},
		"a line break":        {at("/usr/a\nb"), "plain"},
		"a long name":         {at("/usr/" + strings.Repeat("x", 256)), "255"},
		"a long path":         {at("/usr" + strings.Repeat("/xxxxxxx", 512)), "plain"},
		"no source":           {file(func(c *files.Content) { c.Source = filepath.Join(filepath.Dir(fifo), "nowhere") }), "nowhere"},
		"a folder":            {file(func(c *files.Content) { c.Source = filepath.Dir(fifo) }), "folder"},
		"a pipe":              {file(func(c *files.Content) { c.Source = fifo }), "regular"},
		"an owner with space": {file(func(c *files.Content) { c.FileInfo = &files.ContentFileInfo{Owner: "a b", Mode: 0o644} }), "owner"},
		"twice": {func(p *Package) {
			p.Info.Contents = append(p.Info.Contents, p.Info.Contents[0])
		}, "collision"},
		"no name":           {func(p *Package) { p.Info.Name = "" }, "name"},
		"a name with slash": {func(p *Package) { p.Info.Name = "a/b" }, "name"},
		"a name like ..":    {func(p *Package) { p.Info.Name = "..a" }, "name"},
		"a name like -":     {func(p *Package) { p.Info.Name = "-a" }, "name"},
		"no architecture":   {func(p *Package) { p.Info.Arch = "" }, "architecture"},
		"an architecture":   {func(p *Package) { p.Info.Arch = "x/y" }, "architecture"},
		"no version":        {func(p *Package) { p.Info.Version, p.Info.Prerelease = "", "" }, "version"},
		"a version":         {func(p *Package) { p.Info.Version = "1:0" }, "1:0"},
		"an epoch":          {func(p *Package) { p.Info.Epoch = "one" }, "epoch"},
		"a release":         {func(p *Package) { p.Info.Release = "r1" }, "release"},
		"no time":           {func(p *Package) { p.Info.MTime = time.Time{} }, "time"},
		"a platform":        {func(p *Package) { p.Info.Platform = "darwin" }, "platform"},
		"a dependency":      {func(p *Package) { p.Info.Depends = []string{"a\npkgname = b"} }, "depend"},
		"an empty conflict": {func(p *Package) { p.Info.Conflicts = []string{""} }, "conflict"},
		"a packager":        {func(p *Package) { p.Info.Maintainer = "a\x1bb" }, "packager"},
		"bad bash":          {func(p *Package) { p.Install = []byte("post_install() {\n\tif\n}\n") }, "bash"},
		"no function":       {func(p *Package) { p.Install = []byte("# nothing\n") }, "function"},
		"an empty script":   {func(p *Package) { p.Install = []byte{} }, "function"},
		"CR in a script":    {func(p *Package) { p.Install = []byte("post_install() {\r\n:\r\n}\r\n") }, "lines"},
		"no such script":    {func(p *Package) { p.Info.Scripts.PostInstall = fifo + ".nowhere" }, "nowhere"},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "bad bash" {
				if _, err := exec.LookPath("bash"); err != nil {
					t.Skip("bash is not here")
				}
			}
			p, dir := sample(&files.Content{Source: put(t, "x"), Destination: "/usr/bin/x"}), t.TempDir()
			c.spoil(&p)
			_, err := Write(t.Context(), dir, p)
			if err == nil || !strings.Contains(err.Error(), c.says) || strings.ContainsAny(err.Error(), "\n\x1b") {
				t.Errorf("error: %v", err)
			}
			if k := fault.KindOf(err); k == fault.Partial || k == fault.Todo {
				t.Errorf("kind %d", k)
			}
			nothing(t, dir)
		})
	}
}

const limited = "NOX_TEST_PACK_INTO"

// A limit on the size of files (setrlimit(2)) stands for a full disk: the write
// that goes over it fails, whichever it is.
func TestFullDiskLeavesNothing(t *testing.T) {
	if dir := os.Getenv(limited); dir != "" {
		signal.Ignore(syscall.SIGXFSZ)
		noise := make([]byte, 256<<10)
		for i := range noise {
			noise[i] = byte(i * i >> 3 * 31)
		}
		_, err := Write(t.Context(), dir, sample(&files.Content{Source: put(t, string(noise[:1000])), Destination: "/usr/bin/x"}))
		if err == nil || !strings.Contains(err.Error(), "file too large") {
			t.Errorf("error: %v", err)
		}
		nothing(t, dir)
		return
	}
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("bash is not here")
	}
	cmd := exec.Command(bash, "-c", "ulimit -f 1; exec \"$@\"", "-", os.Args[0], "-test.run=^TestFullDiskLeavesNothing$", "-test.count=1")
	cmd.Env = append(os.Environ(), limited+"="+t.TempDir())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestMissingFolderIsAnError(t *testing.T) {
	_, err := Write(t.Context(), filepath.Join(t.TempDir(), "nowhere"), sample())
	if err == nil || !strings.Contains(err.Error(), "nowhere") {
		t.Errorf("error: %v", err)
	}
}
