package profile

import (
	"regexp"
	"slices"
	"strings"
)

var (
	machineIDForm = regexp.MustCompile(`^[0-9a-f]{32}$`)
	productIDForm = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
)

// placeholders are UUIDs that makers of boards leave in place of one: whole
// series have them. Inventory agents keep such lists (GLPI, FusionInventory).
var placeholders = []string{
	"00010203-0405-0607-0809-0a0b0c0d0e0f", // counted, and how firmware turns that round
	"03020100-0504-0706-0809-0a0b0c0d0e0f",
	"00020003-0004-0005-0006-000700080009", // American Megatrends' default
	"03000200-0400-0500-0006-000700080009",
	"03d40274-0435-05dc-8506-010700080009",
	"11111111-2222-3333-4444-555555555555",
	"12345678-1234-5678-90ab-cddeefaabbcc",
	"6ab5b300-538d-1014-9fb5-b0684d007b53",
	"deadbeef-dead-beef-dead-beefdeadbeef",
}

// shared says that an id, in lower case, tells no two machines apart: one byte
// all along (zero, ff, 01, …), or one that is known. A virtual machine's
// machine-id(5) is often its product's UUID, so it is asked of both.
func shared(id string) bool {
	digits := strings.ReplaceAll(id, "-", "")
	if digits == strings.Repeat(digits[:2], len(digits)/2) {
		return true
	}
	return slices.ContainsFunc(placeholders, func(p string) bool { return strings.ReplaceAll(p, "-", "") == digits })
}

// machineID leaves out what machine-id(5) allows in an image ("uninitialized",
// empty) and what is no such id.
func (s source) machineID() (string, error) {
	b, err := read(s.files.Path("/etc/machine-id"))
	id := strings.TrimSpace(string(b))
	if !machineIDForm.MatchString(id) || shared(id) {
		return "", err
	}
	return id, nil
}

// productID is the first of those that systemd asks as well: SMBIOS, Xen, a
// device tree of KVM. In a container it is that of the machine around it, which
// it shares with all others there; so does a tree that is not the machine.
func (s source) productID() (string, error) {
	if in, _ := s.container(); in != "none" || !s.alone() {
		return "", nil
	}
	var first error
	for _, path := range []string{"/sys/class/dmi/id/product_uuid", "/sys/hypervisor/uuid", "/proc/device-tree/vm,uuid"} {
		b, err := read(s.kernel.Path(path))
		if err != nil && first == nil {
			first = err // only root may read SMBIOS's
		}
		id := strings.ToLower(strings.Trim(string(b), "\x00 \n"))
		if productIDForm.MatchString(id) && !shared(id) {
			return id, nil
		}
	}
	return "", first
}
