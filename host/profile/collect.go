package profile

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/nox-mesh/nox-mesh/bundle"
	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/internal/layout"
)

// How long a fact may take: those that are in small files or in the kernel, and
// those for which a file system or another process has to answer.
const (
	near = 2 * time.Second
	far  = 5 * time.Second
)

// A fact is looked for by itself. It may return both, what it found and why
// that is not all.
type fact struct {
	name  string // in the JSON
	limit time.Duration
	look  func(context.Context, source) (finding, error)
}

// A finding puts what was found where it belongs; nil is nothing.
type finding func(*Profile, *Inventory)

// of is a fact that is one value, which look finds and which belongs at a place.
func of[T any](look func(source) (T, error), place func(*Profile, *Inventory) *T) func(context.Context, source) (finding, error) {
	return func(_ context.Context, s source) (finding, error) {
		found, err := look(s)
		return func(p *Profile, i *Inventory) { *place(p, i) = found }, err
	}
}

// sure is a look that has no error.
func sure(look func(source) string) func(source) (string, error) {
	return func(s source) (string, error) { return look(s), nil }
}

// runs are the facts of a Profile, has those of an Inventory.
var (
	runs = []fact{
		{"distribution", near, func(_ context.Context, s source) (finding, error) {
			release, err := s.release()
			return func(p *Profile, _ *Inventory) {
				p.Distribution, p.DistributionVersion = release["ID"], release["VERSION_ID"]
			}, err
		}},
		{"init", near, of(sure(source.init), func(p *Profile, _ *Inventory) *string { return &p.Init })},
		{"package_manager", near, of(sure(source.packageManager), func(p *Profile, _ *Inventory) *string { return &p.PackageManager })},
		{"runtime", near, of(source.runtime, func(p *Profile, _ *Inventory) *string { return &p.Runtime })},
		{"virtualisation", near, of(sure(source.hypervisor), func(p *Profile, _ *Inventory) *string { return &p.Virtualisation })},
		{"container", near, of(source.container, func(p *Profile, _ *Inventory) *string { return &p.Container })},
		{"hostname", near, of(source.hostname, func(p *Profile, _ *Inventory) *string { return &p.Hostname })},
		{"machine_id", near, of(source.machineID, func(p *Profile, _ *Inventory) *string { return &p.MachineID })},
		{"product_id", near, of(source.productID, func(p *Profile, _ *Inventory) *string { return &p.ProductID })},
		{"memory_bytes", near, of(source.memory, func(p *Profile, _ *Inventory) *int64 { return &p.MemoryBytes })},
	}
	has = []fact{
		{"addresses", near, func(_ context.Context, s source) (finding, error) {
			interfaces, all, err := s.ownInterfaces()
			return func(_ *Profile, i *Inventory) { i.Interfaces, i.Addresses = interfaces, all }, err
		}},
		{"package_manager_version", far, func(ctx context.Context, s source) (finding, error) {
			version, err := s.packageManagerVersion(ctx)
			return func(_ *Profile, i *Inventory) { i.PackageManagerVersion = version }, err
		}},
		{"runtime_version", far, func(ctx context.Context, s source) (finding, error) {
			version, err := s.engineVersion(ctx)
			return func(_ *Profile, i *Inventory) { i.RuntimeVersion = version }, err
		}},
		{"disks", near, of(source.disks, func(_ *Profile, i *Inventory) *[]Disk { return &i.Disks })},
		{"file_systems", far, of(source.fileSystems, func(_ *Profile, i *Inventory) *[]FileSystem { return &i.FileSystems })},
	}
)

// Collect looks at what the machine can run. It never fails: what cannot be
// found out, is too large to be true, or comes after its deadline or the end of
// ctx, is left empty. With a layout that is not the machine itself, the files
// are those under its root; what the kernel says stays the machine's.
func Collect(ctx context.Context, l layout.Layout) Profile {
	p, _ := machine(l).find(ctx, runs)
	return p
}

// Look also looks at what the machine has, under the same rules. Inventory.Unknown
// is about both; Version and Owned are left to who knows them.
func Look(ctx context.Context, l layout.Layout) (Profile, Inventory) {
	return machine(l).find(ctx, runs, has)
}

func (s source) find(ctx context.Context, lists ...[]fact) (Profile, Inventory) {
	p := Profile{
		Architecture: bundle.Architecture(runtime.GOARCH),
		Init:         "none",
		CPUs:         runtime.NumCPU(),
		Schema:       declaration.Schema,
		Kernel:       kernel(),
	}
	var inv Inventory
	type result struct {
		name  string
		found finding
		err   error
	}
	var results []*result
	var all sync.WaitGroup
	for _, list := range lists {
		for _, f := range list {
			r := &result{name: f.name}
			results = append(results, r)
			all.Go(func() { r.found, r.err = s.ask(ctx, f) })
		}
	}
	all.Wait()
	for _, r := range results {
		if r.found != nil {
			r.found(&p, &inv)
		}
		if r.err != nil {
			if inv.Unknown == nil {
				inv.Unknown = map[string]string{}
			}
			inv.Unknown[r.name] = line(r.err.Error())
		}
	}
	return p, inv
}
