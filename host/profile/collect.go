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

// runs are the facts of a Profile, has those of an Inventory.
var (
	runs = []fact{
		{"distribution", near, func(_ context.Context, s source) (finding, error) {
			release, err := s.release()
			return func(p *Profile, _ *Inventory) {
				p.Distribution, p.DistributionVersion = release["ID"], release["VERSION_ID"]
			}, err
		}},
		{"init", near, func(_ context.Context, s source) (finding, error) {
			name := s.init()
			return func(p *Profile, _ *Inventory) { p.Init = name }, nil
		}},
		{"package_manager", near, func(_ context.Context, s source) (finding, error) {
			name := s.packageManager()
			return func(p *Profile, _ *Inventory) { p.PackageManager = name }, nil
		}},
		{"runtime", near, func(_ context.Context, s source) (finding, error) {
			engine := s.engine()
			return func(p *Profile, _ *Inventory) { p.Runtime = engine.name }, nil
		}},
		{"virtualisation", near, func(_ context.Context, s source) (finding, error) {
			name := s.hypervisor()
			return func(p *Profile, _ *Inventory) { p.Virtualisation = name }, nil
		}},
		{"container", near, func(_ context.Context, s source) (finding, error) {
			name, err := s.container()
			return func(p *Profile, _ *Inventory) { p.Container = name }, err
		}},
		{"hostname", near, func(_ context.Context, s source) (finding, error) {
			name, err := s.hostname()
			return func(p *Profile, _ *Inventory) { p.Hostname = name }, err
		}},
		{"machine_id", near, func(_ context.Context, s source) (finding, error) {
			id, err := s.machineID()
			return func(p *Profile, _ *Inventory) { p.MachineID = id }, err
		}},
		{"product_id", near, func(_ context.Context, s source) (finding, error) {
			id, err := s.productID()
			return func(p *Profile, _ *Inventory) { p.ProductID = id }, err
		}},
		{"memory_bytes", near, func(_ context.Context, s source) (finding, error) {
			n, err := s.memory()
			return func(p *Profile, _ *Inventory) { p.MemoryBytes = n }, err
		}},
	}
	has = []fact{
		{"addresses", near, func(_ context.Context, s source) (finding, error) {
			all, err := s.ownInterfaces()
			return func(_ *Profile, i *Inventory) { i.Interfaces, i.Addresses = all, flat(all) }, err
		}},
		{"package_manager_version", far, func(ctx context.Context, s source) (finding, error) {
			version, err := s.packageManagerVersion(ctx)
			return func(_ *Profile, i *Inventory) { i.PackageManagerVersion = version }, err
		}},
		{"runtime_version", far, func(ctx context.Context, s source) (finding, error) {
			version, err := s.engineVersion(ctx)
			return func(_ *Profile, i *Inventory) { i.RuntimeVersion = version }, err
		}},
		{"disks", near, func(_ context.Context, s source) (finding, error) {
			disks, err := s.disks()
			return func(_ *Profile, i *Inventory) { i.Disks = disks }, err
		}},
		{"file_systems", far, func(_ context.Context, s source) (finding, error) {
			all, err := s.fileSystems()
			return func(_ *Profile, i *Inventory) { i.FileSystems = all }, err
		}},
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
			all.Go(func() { r.found, r.err = s.looks.ask(ctx, s, f) })
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
