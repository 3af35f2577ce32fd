package profile

import (
	"strings"
	"testing"

	"github.com/nox-mesh/nox-mesh/internal/layout"
)

func TestWhatManyHaveIsNoEvidence(t *testing.T) {
	const good, goodProduct = "9f2b1c6e5d4a4b3c8e7f60718293a4b5", "4c9b0a51-2b5c-11b2-a85c-f3a1d0b4e1c7"
	for in, want := range map[string]string{
		good: good, good + "\n": good, strings.ToUpper(good): "", good[:31]: "", good + "0": "", "uninitialized\n": "", "": "",
		strings.Repeat("0", 32): "", strings.Repeat("f", 32): "", strings.Repeat("01", 16): "", "03000200040005000006000700080009": "",
		strings.Repeat("0", 31) + "1": strings.Repeat("0", 31) + "1", goodProduct: "",
	} {
		got, err := quiet(tree(t, map[string]string{"/etc/machine-id": in})).machineID()
		if got != want || err != nil {
			t.Errorf("machine id %q: %q, %v", in, got, err)
		}
	}
	for in, want := range map[string]string{
		goodProduct + "\n": goodProduct, strings.ToUpper(goodProduct): goodProduct, goodProduct + "\x00": goodProduct,
		"00000000-0000-0000-0000-000000000000": "", "FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF": "", "fefefefe-fefe-fefe-fefe-fefefefefefe": "",
		"03000200-0400-0500-0006-000700080009\n": "", "00020003-0004-0005-0006-000700080009\n": "", "Not Settable": "", good: "",
	} {
		got, err := quiet(tree(t, map[string]string{"/sys/class/dmi/id/product_uuid": in})).productID()
		if got != want || err != nil {
			t.Errorf("product id %q: %q, %v", in, got, err)
		}
	}
	xen := map[string]string{"/sys/class/dmi/id/product_uuid": "00000000-0000-0000-0000-000000000000\n", "/sys/hypervisor/uuid": goodProduct + "\n"}
	if got, err := quiet(tree(t, xen)).productID(); got != goodProduct || err != nil {
		t.Errorf("xen's: %q, %v", got, err)
	}
}

// TestASharedMachineIsNoEvidence: that of the machine around a container, or
// around a tree that is one of many.
func TestASharedMachineIsNoEvidence(t *testing.T) {
	files := map[string]string{"/sys/class/dmi/id/product_uuid": "4c9b0a51-2b5c-11b2-a85c-f3a1d0b4e1c7\n"}
	s := quiet(tree(t, files))
	s.files = layout.Layout{Root: t.TempDir()}
	if got, err := s.productID(); got != "" || err != nil {
		t.Errorf("one of many trees: %q, %v", got, err)
	}
	files["/.dockerenv"] = ""
	if got, err := quiet(tree(t, files)).productID(); got != "" || err != nil {
		t.Errorf("in a container: %q, %v", got, err)
	}
}
