package arch

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/goreleaser/nfpm/v2"
)

func TestPkgVer(t *testing.T) {
	for release, want := range map[string]string{
		"1.0.0": "1.0.0", "1.0.0-rc.1": "1.0.0rc1", "1.0.0-rc1": "1.0.0rc1", "1.0.0-alpha": "1.0.0alpha",
		"0.0.0-dev": "0.0.0dev", "1.0.0-rc.10": "1.0.0rc10", "2026.11.30": "2026.11.30", "1.0_2": "1.0_2",
		"1.0-1": "", "1.0.0-rc.1.2": "", "1.0.0-": "", "1.0.0-rc.": "", "1.0.0-rc-1": "", "1.0a-rc.1": "", "1.0.0-rc.01": "",
		"": "", "-rc.1": "", "1:0": "", "1/0": "", "1<0": "", "1>0": "", "1=0": "", "1 0": "", "1.0\n": "", "1.0é": "", ".1": "",
		"1.0;id": "", strings.Repeat("1", 65): "",
	} {
		got, err := PkgVer(release)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v; want %q", release, got, err, want)
		}
	}
}

func TestVersionOf(t *testing.T) {
	for _, c := range []struct {
		info nfpm.Info
		want string
	}{
		{nfpm.Info{Version: "1.0.0"}, "1.0.0-1"},
		{nfpm.Info{Version: "1.0.0", Prerelease: "rc.1", Release: "2"}, "1.0.0rc1-2"},
		{nfpm.Info{Version: "1.0.0-rc.1", Release: "1.1"}, "1.0.0rc1-1.1"},
		{nfpm.Info{Version: "1.0.0", Epoch: "2"}, "2:1.0.0-1"},
		{nfpm.Info{Version: "1.0.0", Epoch: "0"}, "1.0.0-1"},
		{nfpm.Info{Version: "1.0.0", Epoch: "x"}, ""},
		{nfpm.Info{Version: "1.0.0", Epoch: "-1"}, ""},
		{nfpm.Info{Version: "1.0.0", Release: "x"}, ""},
		{nfpm.Info{Version: "1.0.0", Release: "1.1.1"}, ""},
		{nfpm.Info{Version: "1.0.0", Release: "1-1"}, ""},
		{nfpm.Info{Version: "1.0.0", VersionMetadata: "git"}, ""},
	} {
		v, err := VersionOf(&c.info)
		if (err == nil) != (c.want != "") || err == nil && v.String() != c.want {
			t.Errorf("%+v: %v, %v; want %q", c.info, v, err, c.want)
		}
		if err != nil {
			continue
		}
		if back, err := ParseVersion(c.want); err != nil || back != v {
			t.Errorf("%q is read as %v, %v", c.want, back, err)
		}
	}
	for _, s := range []string{"", "1.0", "1.0-", "-1", "0:1.0-1", "01:1.0-1", "+1:1.0-1", "1:1:1.0-1", "1.0-1-1", "1.0-1 ", "../1-1"} {
		if v, err := ParseVersion(s); err == nil {
			t.Errorf("%q is read as %v", s, v)
		}
	}
}

// The order of releases is the one that pacman will see.
func TestPacmanSortsReleases(t *testing.T) {
	vercmp, err := exec.LookPath("vercmp")
	if err != nil {
		t.Skip("vercmp is not here")
	}
	order := []nfpm.Info{
		{Version: "0.9.9"}, {Version: "1.0.0-alpha"}, {Version: "1.0.0-alpha.1"}, {Version: "1.0.0-beta.2"}, {Version: "1.0.0-beta.11"},
		{Version: "1.0.0-rc.1"}, {Version: "1.0.0-rc.1", Release: "1.1"}, {Version: "1.0.0-rc.2"}, {Version: "1.0.0"},
		{Version: "1.0.0", Release: "2"}, {Version: "1.0.1-rc.1"}, {Version: "1.0.1"}, {Version: "0.1.0", Epoch: "1"},
	}
	for i := range order[1:] {
		a, errA := VersionOf(&order[i])
		b, errB := VersionOf(&order[i+1])
		if errA != nil || errB != nil {
			t.Fatal(errA, errB)
		}
		out, err := exec.Command(vercmp, a.String(), b.String()).Output()
		if err != nil || strings.TrimSpace(string(out)) != "-1" {
			t.Errorf("vercmp %s %s says %s, %v", a, b, out, err)
		}
	}
}
