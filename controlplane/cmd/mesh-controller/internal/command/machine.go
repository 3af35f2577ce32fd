package command

import (
	"maps"
	"slices"
	"strings"

	"github.com/nox-mesh/nox-mesh/host/profile"
	"github.com/nox-mesh/nox-mesh/internal/progress"
)

// machineRows are what a node says of its machine: what it can run, as it was
// when the node was admitted, and what it had when it last said so. A line that
// would say nothing is left out.
func machineRows(p profile.Profile, inv *profile.Inventory) [][]string {
	machine := strings.Join(strings.Fields(p.Architecture+" "+p.Distribution+" "+p.DistributionVersion), " ") + ", init " + p.Init
	if p.Container != "" && p.Container != "none" {
		machine += ", " + p.Container + " container"
	}
	if p.Virtualisation != "" && p.Virtualisation != "none" {
		machine += ", on " + p.Virtualisation
	}
	if inv == nil {
		inv = &profile.Inventory{}
	}
	var disks, unknown []string
	for _, d := range inv.Disks {
		disks = append(disks, d.Name+" "+progress.Bytes(d.Bytes))
	}
	for _, fact := range slices.Sorted(maps.Keys(inv.Unknown)) {
		unknown = append(unknown, strings.ReplaceAll(fact, "_", " ")+": "+inv.Unknown[fact])
	}
	rows := [][]string{
		{"machine", machine},
		{"packages", withVersion(p.PackageManager, inv.PackageManagerVersion)},
		{"containers", withVersion(p.Runtime, inv.RuntimeVersion)},
		{"addresses", strings.Join(inv.Addresses, ", ")},
		{"disks", strings.Join(disks, ", ")},
		{"unknown", strings.Join(unknown, "; ")},
	}
	return slices.DeleteFunc(rows, func(r []string) bool { return r[1] == "" })
}

func withVersion(program, version string) string {
	if program == "" {
		return ""
	}
	return strings.TrimSpace(program + " " + version)
}
