//go:build machine

package powercut

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// software is what the machine boots with: the guest as its first process, and
// the host as it is shipped.
func software(t *testing.T, home string) (archive []byte, host string) {
	t.Helper()
	var out bytes.Buffer
	host = filepath.Join(home, "mesh-host")
	init := filepath.Join(home, "init")
	module := "github.com/nox-mesh/nox-mesh/"
	for file, pkg := range map[string]string{host: "host/cmd/mesh-host", init: "lab/powercut/guest"} {
		build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", file, module+pkg)
		build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
		if msg, err := build.CombinedOutput(); err != nil {
			t.Fatalf("cannot build %s: %v\n%s", pkg, err, msg)
		}
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		pack(&out, filepath.Base(file), 0o100755, b)
	}
	return out.Bytes(), host
}

// initrd writes what the machine boots with, and the declarations of some
// generations beginning with first.
func initrd(t *testing.T, to string, software []byte, first, generations uint64) {
	t.Helper()
	out := bytes.NewBuffer(bytes.Clone(software))
	pack(out, "declarations", 0o040755, nil)
	for n := first; n < first+generations; n++ {
		pack(out, fmt.Sprintf("declarations/%d.json", n), 0o100644, Document(Of(n)))
	}
	pack(out, "TRAILER!!!", 0, nil)
	if err := os.WriteFile(to, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

// pack adds a file to an archive as the kernel reads it, cpio "newc"
// (Documentation/driver-api/early-userspace/buffer-format.rst).
func pack(out *bytes.Buffer, name string, mode int, content []byte) {
	align := func() {
		for out.Len()%4 != 0 {
			out.WriteByte(0)
		}
	}
	align()
	out.WriteString("070701")
	for _, field := range []int{0, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name) + 1, 0} {
		fmt.Fprintf(out, "%08X", field)
	}
	out.WriteString(name + "\x00")
	align()
	out.Write(content)
	align()
}
