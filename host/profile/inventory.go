package profile

// Inventory is what a machine has.
type Inventory struct {
	// Version is that of the running host.
	Version string `json:"version"`
	// Owned are the keys of the resources the host owns.
	Owned []string `json:"owned,omitempty"`
	// Addresses are those of Interfaces, sorted.
	Addresses  []string    `json:"addresses,omitempty"`
	Interfaces []Interface `json:"interfaces,omitempty"`
	// PackageManagerVersion is the version that the package manager has of itself
	// in its database; RuntimeVersion is what the runtime that runs says it is.
	PackageManagerVersion string       `json:"package_manager_version,omitempty"`
	RuntimeVersion        string       `json:"runtime_version,omitempty"`
	Disks                 []Disk       `json:"disks,omitempty"`
	FileSystems           []FileSystem `json:"file_systems,omitempty"`
	// Unknown says of each fact that could not be had why not. The keys are the
	// facts' names in this JSON and that of the profile.
	Unknown map[string]string `json:"unknown,omitempty"`
}

// An Interface has addresses by which other machines may reach this one.
type Interface struct {
	Name      string   `json:"name"`
	Addresses []string `json:"addresses"`
}

// A Disk is a whole one, as the kernel shows it; in a container it is the
// machine's around it.
type Disk struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
	// Rotational is what the kernel takes it for; many hypervisors say nothing,
	// and it then takes it for one.
	Rotational bool `json:"rotational"`
	Removable  bool `json:"removable"`
}

// A FileSystem is one that the host or what it declares lives on.
type FileSystem struct {
	// Mount is where it is mounted, Holds which of "/", "/usr", "/var" and the
	// place of the host's state are on it.
	Mount    string   `json:"mount"`
	Holds    []string `json:"holds"`
	Type     string   `json:"type"`
	Bytes    int64    `json:"bytes"`
	ReadOnly bool     `json:"read_only"`
}
