package pack

import (
	"bytes"
	"debug/buildinfo"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/internal/durable"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/internal/input"
	"github.com/nox-mesh/nox-mesh/release/internal/build"
)

// maxProgram bounds a program, in bytes.
const maxProgram = 512 << 20

// A Program is a compiled program.
type Program struct {
	// ID is its name: "mesh-host". Architecture is as uname -m says it.
	ID, Architecture string
	// Version is the one that it says it is.
	Version string
	// Go is the toolchain that made it ("go1.26.0").
	Go string
	// Path is where it was read, SHA256 what it is, in hex.
	Path, SHA256 string

	content []byte
}

var machines = map[elf.Machine]string{elf.EM_X86_64: "x86_64", elf.EM_AARCH64: "aarch64"}

// ReadProgram asks a compiled program what it is: nobody has to say, and nobody
// can say it wrong. The machine is in its ELF header, the name and the toolchain
// in what Go writes into each binary, the version where the linker put it. It is
// read once: what is packed later is what was looked at here.
func ReadProgram(file string) (Program, error) {
	b, err := readProgram(file)
	if err != nil {
		return Program{}, fmt.Errorf("cannot pack program: %w", err)
	}
	p := Program{Path: file, SHA256: digest.FromBytes(b).Encoded(), content: b}
	if err := p.ask(); err != nil {
		return Program{}, fault.Refusedf("cannot pack %q: %w", file, err)
	}
	return p, nil
}

func readProgram(file string) ([]byte, error) {
	b, err := input.ReadFile(file, maxProgram)
	if errors.Is(err, input.ErrNotRegular) {
		return nil, fault.Refusedf("%w", err)
	}
	return b, err
}

func (p *Program) ask() error {
	e, err := elf.NewFile(bytes.NewReader(p.content))
	if err != nil {
		return fmt.Errorf("it is no program for Linux: %w", err)
	}
	var ok bool
	if p.Architecture, ok = machines[e.Machine]; !ok {
		return fmt.Errorf("it is for %v, not for x86_64 or aarch64", e.Machine)
	}
	for _, s := range e.Progs {
		if s.Type == elf.PT_INTERP {
			return fmt.Errorf("it is not static: build it with CGO_ENABLED=0")
		}
	}
	info, err := buildinfo.Read(bytes.NewReader(p.content))
	if err != nil {
		return fmt.Errorf("it is no Go program: %w", err)
	}
	p.ID, p.Go = path.Base(info.Path), info.GoVersion
	if !slices.Contains(Contents, p.ID) {
		return fmt.Errorf("a release has no %s", p.ID)
	}
	p.Version, err = build.Version(e)
	return err
}

// copy puts a program, as it was read, where nobody else writes, under its name.
func (p *packing) copy(program Program) (string, error) {
	dir := filepath.Join(p.work, program.Architecture)
	path := filepath.Join(dir, program.ID)
	if _, err := os.Lstat(path); err == nil {
		return path, nil
	}
	if err := durable.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("cannot copy %q: %w", program.Path, err)
	}
	return path, durable.WriteFile(path, program.content, 0o755)
}
