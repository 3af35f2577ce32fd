// Package profile is what a machine can run (Profile) and what it has
// (Inventory). Both are claims of the machine about itself; the control plane
// decides on them and keeps what it decided on.
package profile

// Profile is what a machine can run.
type Profile struct {
	// Architecture is as uname(1) spells it: "x86_64", "aarch64".
	Architecture string `json:"architecture"`
	Kernel       string `json:"kernel,omitempty"`
	// Distribution and its version are ID and VERSION_ID of os-release(5).
	Distribution        string `json:"distribution,omitempty"`
	DistributionVersion string `json:"distribution_version,omitempty"`
	// Init is "systemd" when systemd runs as PID 1, else "none".
	Init string `json:"init"`
	// PackageManager is "pacman", "apt" or empty; Runtime is "podman",
	// "docker" or empty.
	PackageManager string `json:"package_manager,omitempty"`
	Runtime        string `json:"runtime,omitempty"`
	Hostname       string `json:"hostname,omitempty"`
	// MachineID is evidence, never identity: all-zero and empty ones are left out.
	MachineID string `json:"machine_id,omitempty"`
	// MemoryBytes is the machine's memory.
	MemoryBytes int64 `json:"memory_bytes,omitempty"`
	CPUs        int   `json:"cpus,omitempty"`
	// Schema is the newest declaration schema the host reads.
	Schema int `json:"schema"`
}

// Inventory is what a machine has.
type Inventory struct {
	// Version is that of the running host.
	Version string `json:"version"`
	// Owned are the keys of the resources the host owns.
	Owned []string `json:"owned,omitempty"`
	// Addresses are the machine's global unicast addresses.
	Addresses []string `json:"addresses,omitempty"`
}
