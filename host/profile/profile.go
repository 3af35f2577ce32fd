// Package profile is what a machine can run (Profile) and what it has
// (Inventory). Both are claims of the machine about itself; the control plane
// decides on them and keeps what it decided on.
//
// Each fact is looked for by itself, with its own deadline: one that cannot be
// had, or not in time, is left empty, never guessed, and Inventory.Unknown says
// why; it holds up no other. No program is run. What is read is bounded, and
// what is kept drives no terminal.
//
// A Profile is of the moment it was asked for. The control plane keeps the one a
// node enrolled with, and its digest with the decision to admit the node; a later
// one may differ on a machine nobody changed: where a fact came too late, which
// Unknown says, and in Runtime where podman and docker are both there, which
// follows the sockets as containers do. What is known only while something
// answers is in the Inventory.
//
// Nothing is written, so there is nothing to survive a crash.
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
	// "docker" or empty: what declared containers would run on now (Engines).
	PackageManager string `json:"package_manager,omitempty"`
	Runtime        string `json:"runtime,omitempty"`
	// Virtualisation is the hypervisor that the machine runs under and Container
	// the kind of container that it is, both as systemd-detect-virt(1) calls them;
	// "none" where there is none, empty where that is not known.
	Virtualisation string `json:"virtualisation,omitempty"`
	Container      string `json:"container,omitempty"`
	Hostname       string `json:"hostname,omitempty"`
	// MachineID (machine-id(5)) and ProductID (the SMBIOS product UUID, or what the
	// hypervisor has in its place) are evidence, never identity: those that are
	// known to be shared, the all-zero one first, are left out.
	MachineID string `json:"machine_id,omitempty"`
	ProductID string `json:"product_id,omitempty"`
	// MemoryBytes is the machine's memory.
	MemoryBytes int64 `json:"memory_bytes,omitempty"`
	CPUs        int   `json:"cpus,omitempty"`
	// Schema is the newest declaration schema the host reads.
	Schema int `json:"schema"`
}
