package command

import (
	"bytes"
	"strings"
	"testing"

	"github.com/nox-mesh/nox-mesh/controlplane/internal/admin"
	"github.com/nox-mesh/nox-mesh/host/profile"
	"github.com/nox-mesh/nox-mesh/internal/cli"
)

func TestShowSaysWhatTheMachineIs(t *testing.T) {
	const bad = "x\x1b[2J\u202e\ny"
	for name, c := range map[string]struct {
		p    profile.Profile
		inv  *profile.Inventory
		want []string
	}{
		"of an older host": {profile.Profile{Architecture: "x86_64", Init: "none"}, nil, []string{"machine x86_64, init none"}},
		"of hardware": {
			profile.Profile{Architecture: "x86_64", Distribution: "arch", Init: "systemd", PackageManager: "pacman", Virtualisation: "none", Container: "none"},
			&profile.Inventory{PackageManagerVersion: "7.0.0-1", Disks: []profile.Disk{{Name: "nvme0n1", Bytes: 512110190592}, {Name: "sda", Bytes: 1 << 40}}},
			[]string{"machine x86_64 arch, init systemd", "packages pacman 7.0.0-1", "disks nvme0n1 477 GiB, sda 1.0 TiB"},
		},
		"of a container": {
			profile.Profile{Architecture: "aarch64", Distribution: "debian", DistributionVersion: "12", Init: "systemd", Runtime: "podman", Virtualisation: "kvm", Container: "lxc"},
			&profile.Inventory{Addresses: []string{"192.0.2.7", "2001:db8::7"}, Unknown: map[string]string{"runtime_version": "it does not run", "disks": "it did not answer within 2 s"}},
			[]string{"machine aarch64 debian 12, init systemd, lxc container, on kvm", "containers podman", "addresses 192.0.2.7, 2001:db8::7",
				"unknown disks: it did not answer within 2 s; runtime version: it does not run"},
		},
		"of one that lies": {
			profile.Profile{Architecture: bad, Init: bad, Virtualisation: bad, Container: bad, Runtime: bad, PackageManager: bad},
			&profile.Inventory{RuntimeVersion: bad, Addresses: []string{bad}, Disks: []profile.Disk{{Name: bad, Bytes: -1}}, Unknown: map[string]string{bad: bad}}, nil,
		},
	} {
		var out bytes.Buffer
		a := &app{std: cli.Stdio{Out: &out, Err: &out}}
		if err := a.printNode(admin.NodeDetail{Profile: c.p, Inventory: c.inv}); err != nil {
			t.Fatal(err)
		}
		if strings.ContainsAny(out.String(), "\x1b\u202e") || strings.Contains(out.String(), "\ny") {
			t.Errorf("%s: %q", name, out.String())
		}
		if c.want == nil {
			continue
		}
		var got []string
		for line := range strings.Lines(out.String()) {
			switch f := strings.Fields(line); f[0] {
			case "machine", "packages", "containers", "addresses", "disks", "unknown":
				got = append(got, strings.Join(f, " "))
			}
		}
		if strings.Join(got, "\n") != strings.Join(c.want, "\n") {
			t.Errorf("%s: got %q\nwant %q", name, got, c.want)
		}
	}
}
