package profile

import (
	"bytes"
	"io"
	"slices"
	"strconv"
	"strings"
)

// signatures are those that a hypervisor puts in its virtual processor.
var signatures = map[string]string{
	"XenVMMXenVMM": "xen", "KVMKVMKVM": "kvm", "Linux KVM Hv": "kvm", "TCGTCGTCGTCG": "qemu", "VMwareVMware": "vmware",
	"Microsoft Hv": "microsoft", "bhyve bhyve ": "bhyve", "QNXQVMBSQG": "qnx", "ACRNACRNACRN": "acrn",
	"SRESRESRESRE": "sre", "Apple VZ": "apple",
}

// boards are how a virtual machine's SMBIOS begins, in the files in which
// they stand, in the order in which they are asked.
var (
	boardFiles = []string{"product_name", "sys_vendor", "board_vendor", "bios_vendor", "product_version"}
	boards     = []struct{ begins, name string }{
		{"KVM", "kvm"}, {"OpenStack", "kvm"}, {"KubeVirt", "kvm"}, {"Amazon EC2", "amazon"}, {"QEMU", "qemu"},
		{"VMware", "vmware"}, {"VMW", "vmware"}, {"innotek GmbH", "oracle"}, {"VirtualBox", "oracle"},
		{"Oracle Corporation", "oracle"}, {"Xen", "xen"}, {"Bochs", "bochs"}, {"Parallels", "parallels"}, {"BHYVE", "bhyve"},
		{"Hyper-V", "microsoft"}, {"Apple Virtualization", "apple"}, {"Google Compute Engine", "google"},
	}
)

// hypervisor finds what systemd-detect-virt(1) --vm does, by the same rules:
// makers who build on another's hypervisor are told by their board, before the
// processor that names the other; Xen is before the processor, because its
// paravirtual guests see the real one; and who claims to be Microsoft, which
// others do to please Windows, is believed last.
func (s source) hypervisor() string {
	board := s.board()
	if slices.Contains([]string{"oracle", "xen", "amazon", "parallels", "google"}, board) {
		return board
	}
	info := s.head("/proc/cpuinfo")
	if bytes.Contains(info, []byte("User Mode Linux")) {
		return "uml"
	}
	dom0 := false
	if exists(s.kernel, "/proc/xen") {
		if dom0 = s.dom0(); !dom0 {
			return "xen"
		}
	}
	virtual, signature := s.cpu()
	virtual = virtual || hypervisorFlag(info)
	name := signatures[strings.TrimRight(signature, "\x00")]
	if name != "" && name != "microsoft" && !(dom0 && name == "xen") {
		return name
	}
	if dom0 {
		return "none" // it is the real machine's manager
	}
	for _, found := range []string{board, s.hypervisorType(), s.deviceTree()} {
		switch found {
		case "":
		case "vm-other":
			virtual = true
		default:
			return found
		}
	}
	switch {
	case name != "":
		return name
	case virtual:
		return "vm-other"
	}
	return "none"
}

// board is what SMBIOS says. Amazon's machines without a hypervisor have the
// same strings; a bit of the firmware's table tells them apart (SMBIOS 3.6,
// 7.1.2.2, bit 4), or the instance's type.
func (s source) board() string {
	raw := s.head("/sys/firmware/dmi/entries/0-0/raw")
	virtual, known := len(raw) > 19 && raw[19]&(1<<4) != 0, len(raw) > 19
	name := ""
	for _, file := range boardFiles {
		says := s.attribute("/sys/class/dmi/id/" + file)
		for _, b := range boards {
			if name == "" && says != "" && strings.HasPrefix(says, b.begins) {
				name = b.name
			}
		}
	}
	switch {
	case name == "amazon" && known && !virtual,
		name == "amazon" && !known && strings.HasSuffix(s.attribute("/sys/class/dmi/id/product_name"), ".metal"):
		return ""
	case name == "" && virtual:
		return "vm-other"
	}
	return name
}

// dom0 says that this is the guest that manages Xen, on the real hardware: the
// bit XENFEAT_dom0, or what older kernels show.
func (s source) dom0() bool {
	if features := s.attribute("/sys/hypervisor/properties/features"); features != "" {
		n, err := strconv.ParseUint(features, 16, 64)
		return err == nil && n&(1<<11) != 0
	}
	return strings.Contains(s.attribute("/proc/xen/capabilities"), "control_d")
}

func (s source) hypervisorType() string {
	switch s.attribute("/sys/hypervisor/type") {
	case "":
		return ""
	case "xen":
		return "xen"
	}
	return "vm-other"
}

// deviceTree is how machines without SMBIOS are told.
func (s source) deviceTree() string {
	compatible := s.attribute("/proc/device-tree/hypervisor/compatible")
	switch {
	case compatible == "linux,kvm":
		return "kvm"
	case strings.Contains(compatible, "xen"):
		return "xen"
	case strings.Contains(compatible, "vmware"):
		return "vmware"
	case compatible != "":
		return "vm-other"
	}
	dir, err := openDir(s.kernel.Path("/proc/device-tree"))
	if err != nil {
		return ""
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(4096)
	if slices.ContainsFunc(names, func(n string) bool { return strings.Contains(n, "fw-cfg") }) {
		return "qemu"
	}
	return ""
}

// hypervisorFlag says that the processor's flags in /proc/cpuinfo have it.
func hypervisorFlag(info []byte) bool {
	for line := range bytes.Lines(info) {
		if k, v, ok := bytes.Cut(line, []byte(":")); ok && string(bytes.TrimSpace(k)) == "flags" {
			return slices.Contains(strings.Fields(string(v)), "hypervisor")
		}
	}
	return false
}

// head is the beginning of a file of the kernel: all processors say the same.
func (s source) head(path string) []byte {
	f, err := openRegular(s.kernel.Path(path))
	if err != nil || f == nil {
		return nil
	}
	defer f.Close()
	b, _ := io.ReadAll(io.LimitReader(f, 8<<10))
	return b
}
