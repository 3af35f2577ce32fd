package pack

import (
	"bytes"
	"debug/buildinfo"
	"debug/elf"
	"fmt"
	"io"
	"os"
	"path"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/release/internal/build"
)

// maxProgram bounds a program, in bytes.
const maxProgram = 512 << 20

// A Program is a compiled program.
type Program struct {
	// ID is its name: "mesh-host". Architecture is as uname -m says it.
	ID, Architecture string
	// Go is the toolchain that made it ("go1.26.0").
	Go string
	// Path is where it is, SHA256 what it is, in hex.
	Path, SHA256 string

	content []byte
}

var machines = map[elf.Machine]string{elf.EM_X86_64: "x86_64", elf.EM_AARCH64: "aarch64"}

// ReadProgram asks a compiled program what it is: nobody has to say, and nobody
// can say it wrong. The machine is in its ELF header, the name and the toolchain
// in what Go writes into each binary. It is read once: what is packed later is
// what was looked at here.
func ReadProgram(file string) (Program, error) {
	no := func(format string, args ...any) (Program, error) {
		return Program{}, fault.Refusedf("cannot pack %q: %w", file, fmt.Errorf(format, args...))
	}
	f, err := os.Open(file)
	if err != nil {
		return Program{}, fmt.Errorf("cannot pack program: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxProgram+1))
	if err != nil {
		return Program{}, fmt.Errorf("cannot pack program: %w", err)
	}
	if len(b) > maxProgram {
		return no("it has more than %d bytes", maxProgram)
	}
	e, err := elf.NewFile(bytes.NewReader(b))
	if err != nil {
		return no("it is no program for Linux: %w", err)
	}
	arch, ok := machines[e.Machine]
	if !ok {
		return no("it is for %v, not for x86_64 or aarch64", e.Machine)
	}
	for _, s := range e.Progs {
		if s.Type == elf.PT_INTERP {
			return no("it is not static: build it with CGO_ENABLED=0")
		}
	}
	info, err := buildinfo.Read(bytes.NewReader(b))
	if err != nil {
		return no("it is no Go program: %w", err)
	}
	for _, s := range info.Settings {
		if s.Key == "GOARCH" && s.Value != build.Architectures[arch] {
			return no("it says that it is for %s, and is for %s", s.Value, arch)
		}
	}
	return Program{
		ID: path.Base(info.Path), Architecture: arch, Go: info.GoVersion,
		Path: file, SHA256: digest.FromBytes(b).Encoded(), content: b,
	}, nil
}
