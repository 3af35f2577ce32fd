package declaration

import "testing"

var goodPackages = []string{
	`"name": "htop"`,
	`"name": "nox-mesh-host", "version": "1.1.0-1", "source": "` + dgst + `", "signature": "` + dgst2 + `"`,
	`"name": "libstdc++6", "version": "2:1.0~rc1+dfsg-3"`,
	`"name": "lib32-gcc-libs", "source": "` + dgst + `"`,
	`"name": "python3.11"`, `"name": "gtk-update-icon-cache"`, `"name": "R"`, `"name": "a", "version": "1:r12.ab_c@d-1"`,
}

var badPackages = []refused{
	{`"version": "1"`, `resources[0].name: is missing`, false},
	{`"name": ""`, `resources[0].name: is empty`, false},
	{`"name": 1`, `resources[0].name: is not a string such as "htop"`, false},
	{`"name": "a b"`, `resources[0].name: "a b" is not the name of a package`, false},
	{`"name": "-a"`, `resources[0].name: "-a" is not the name of a package`, false},
	{`"name": "../a"`, `resources[0].name: "../a" is not the name of a package`, false},
	{`"name": "a=1"`, `resources[0].name: "a=1" is not the name of a package`, false},
	{`"name": "a", "version": 1.1`, `resources[0].version: is not a string such as "1.1.0-1"`, false},
	{`"name": "a", "version": ""`, `resources[0].version: is empty`, false},
	{`"name": "a", "version": ">1"`, `resources[0].version: ">1" is not a version`, false},
	{`"name": "a", "version": "-1"`, `resources[0].version: "-1" is not a version`, false},
	{`"name": "a", "source": "a.pkg.tar.zst"`, `resources[0].source: "a.pkg.tar.zst" is not a sha256 digest`, false},
	{`"name": "a", "signature": "` + dgst + `"`, `resources[0].signature: is of no source`, false},
	{`"name": "a", "signature": "` + dgst + `", "source": "` + dgst + `"`, `resources[0].signature: is the digest of the source itself`, true},
	{`"name": "a", "path": "/a"`, `resources[0].path: is not known`, false},
}

func TestTheHostsOwnPackageMayBeDeclared(t *testing.T) {
	d, err := Parse([]byte(doc(resource(TypePackage, goodPackages[1]))))
	if err != nil {
		t.Fatal(err)
	}
	want := Package{Name: "nox-mesh-host", Version: "1.1.0-1", Source: dgst, Signature: dgst2}
	if got := *d.Resources[0].Package; got != want {
		t.Errorf("%+v", got)
	}
	const spec = `{"name":"nox-mesh-host","signature":"` + dgst2 + `","source":"` + dgst + `","type":"package","version":"1.1.0-1"}`
	if got := string(d.Resources[0].Spec()); got != spec {
		t.Errorf("%s", got)
	}
}
