package claim

import (
	"testing"

	"github.com/nox-mesh/nox-mesh/host/profile"
)

func TestAClaimHolds(t *testing.T) {
	p := &profile.Profile{
		Architecture: "x86_64", Distribution: "arch", DistributionVersion: "1", Init: "systemd", PackageManager: "pacman",
		Runtime: "podman", Virtualisation: "kvm", Container: "none",
	}
	for key, value := range map[string]string{
		"distribution": "arch", "distribution_version": "1", "init": "systemd", "package_manager": "pacman", "runtime": "podman",
		"virtualisation": "kvm", "container": "none", "architecture": "amd64",
	} {
		c, ok := New(key, value)
		if !ok || !c.Holds(p) {
			t.Errorf("%s does not hold", c)
		}
		if other, ok := New(key, "other"); !ok || other.Holds(p) {
			t.Errorf("%s holds", other)
		}
	}
	if len(Keys()) != 8 {
		t.Errorf("a key is not tried: %v", Keys())
	}
	for _, key := range []string{"", "hostname", "Init"} {
		if _, ok := New(key, "x"); ok {
			t.Errorf("%q is a key", key)
		}
	}
	if c, _ := New("architecture", "amd64"); c.String() != "profile.architecture=x86_64" {
		t.Errorf("%s", c)
	}
}
