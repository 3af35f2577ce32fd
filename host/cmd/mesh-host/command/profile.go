package command

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/nox-mesh/nox-mesh/host/profile"
	"github.com/nox-mesh/nox-mesh/internal/cli"
	"github.com/nox-mesh/nox-mesh/internal/progress"
	"github.com/nox-mesh/nox-mesh/internal/version"
)

// profiled is what the machine can run and, but for what the host owns, what
// it has.
type profiled struct {
	profile.Profile
	Inventory profile.Inventory `json:"inventory"`
}

func (p *program) profile() *cobra.Command {
	return &cobra.Command{
		Use:   "profile",
		Short: "Show what this machine can run, as the control plane is told",
		Long: `Show what this machine can run and what it has: disks, file systems, addresses.
The control plane is told the same, and what the host owns (mesh-host owned). A
fact that cannot be had, or not in time, is unknown, and it is said why.`,
		Example: "  mesh-host profile\n  mesh-host profile --json",
		RunE: func(c *cobra.Command, _ []string) error {
			l, err := p.layout()
			if err != nil {
				return err
			}
			var f profiled
			f.Profile, f.Inventory = profile.Look(c.Context(), l)
			f.Inventory.Version = version.Running()
			return p.print(f, func() error { return f.write(p.std.Out) })
		},
	}
}

// write says it to a person, a line for each fact, disk and interface.
func (f profiled) write(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	// A cell is what one says; the table itself makes the columns.
	row := func(cells ...string) {
		for i := range cells {
			cells[i] = cli.OneLine(cells[i])
		}
		fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	row("architecture", f.Architecture)
	row("kernel", cmp.Or(f.Kernel, "unknown"))
	row("distribution", f.or("distribution", strings.TrimSpace(f.Distribution+" "+f.DistributionVersion), "unknown"))
	row("init", f.or("init", f.Init, "none"))
	row("package manager", f.versioned("package_manager", f.PackageManager, f.Inventory.PackageManagerVersion))
	row("container runtime", f.versioned("runtime", f.Runtime, f.Inventory.RuntimeVersion))
	row("virtualisation", f.virtualised())
	row("hostname", f.or("hostname", f.Hostname, "none"))
	row("machine id", f.or("machine_id", f.MachineID, "none"))
	row("product id", f.or("product_id", f.ProductID, "none"))
	memory := ""
	if f.MemoryBytes > 0 {
		memory = fmt.Sprintf("%d MiB", f.MemoryBytes>>20)
	}
	row("memory", f.or("memory_bytes", memory, "unknown"))
	row("processors", fmt.Sprint(f.CPUs))
	for _, i := range f.Inventory.Interfaces {
		row("address", i.Name, strings.Join(i.Addresses, ", "))
	}
	for _, d := range f.Inventory.Disks {
		row("disk", d.Name, join(progress.Bytes(d.Bytes), when(d.Rotational, "rotational"), when(d.Removable, "removable")))
	}
	for _, s := range f.Inventory.FileSystems {
		row("file system", s.Mount, join(s.Type, progress.Bytes(s.Bytes), when(s.ReadOnly, "read only")))
	}
	for _, list := range [][2]string{{"addresses", "addresses"}, {"disks", "disks"}, {"file_systems", "file systems"}} {
		if why := f.Inventory.Unknown[list[0]]; why != "" {
			row(list[1], "unknown: "+why)
		}
	}
	return w.Flush()
}

// or is the value of a fact, else why it is not known, else what an absent one
// means.
func (f profiled) or(fact, value, absent string) string {
	why := f.Inventory.Unknown[fact]
	switch {
	case why != "" && (value == "" || value == absent):
		return "unknown: " + why
	case value == "":
		return absent
	}
	return value
}

// versioned is a program and its version, else why that is not known.
func (f profiled) versioned(fact, name, version string) string {
	if why := f.Inventory.Unknown[fact+"_version"]; name != "" && why != "" {
		return fmt.Sprintf("%s, version unknown: %s", name, why)
	}
	return f.or(fact, strings.TrimSpace(name+" "+version), "none")
}

// virtualised is the hypervisor, and before it the container if this is one.
func (f profiled) virtualised() string {
	hypervisor := f.or("virtualisation", f.Virtualisation, "unknown")
	switch container := f.or("container", f.Container, "unknown"); {
	case container == "none":
		return hypervisor
	case f.Container == "":
		return hypervisor + ", container " + container
	case hypervisor == "none":
		return container + " container"
	default:
		return container + " container on " + hypervisor
	}
}

func when(is bool, word string) string {
	if is {
		return word
	}
	return ""
}

// join leaves out what is empty.
func join(words ...string) string {
	var out []string
	for _, w := range words {
		if w != "" {
			out = append(out, w)
		}
	}
	return strings.Join(out, ", ")
}
