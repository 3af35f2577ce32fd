package check

import (
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/bundle"
	"github.com/nox-mesh/nox-mesh/bundle/seed"
	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/release/internal/keys"
)

// TestTheSeedIsTheRelease: a bundle brings along for the next machine what lies in
// the release, all of it, and nothing else.
func TestTheSeedIsTheRelease(t *testing.T) {
	p := newPublisher(t)
	key, err := keys.Open(p.dir, keys.ReleaseKey, secret)
	if err != nil {
		t.Fatal(err)
	}
	const list = "nox-mesh-1.0.0-linux-x86_64.seed.json"
	released := func(name string) string { return strings.TrimPrefix(name, "floor/") }
	names := []string{
		"arch/x86_64/nox-mesh-host-1.0.0-1-x86_64.pkg.tar.zst", "arch/x86_64/nox-mesh-host-1.0.0-1-x86_64.pkg.tar.zst.sig",
		"arch/x86_64/nox-mesh.db", "arch/x86_64/nox-mesh.db.sig", "arch/x86_64/nox-mesh.gpg",
		"floor/nox-mesh-host-1.0.0-linux-x86_64.tar.gz", "floor/nox-mesh-host-1.0.0-linux-x86_64.tar.gz.sigstore.json",
	}
	for what, c := range map[string]struct {
		list func(*seed.List)
		// sums and info are what the release and the bundle say.
		sums func(map[string]string)
		info func(*bundle.Info)
		say  string
	}{
		"good":                  {},
		"another counter":       {list: func(l *seed.List) { l.Counter++ }, say: "counter 8"},
		"another bundle":        {list: func(l *seed.List) { l.Name = "web" }, say: "it is of web"},
		"a file too few":        {info: func(i *bundle.Info) { i.Members = i.Members[1:] }, say: "does not bring"},
		"a file of other bytes": {info: func(i *bundle.Info) { i.Members[2].Digest = digest.FromString("x") }, say: `its "seed/arch/x86_64/nox-mesh.db" is not`},
		"a file too many": {info: func(i *bundle.Info) {
			i.Members = append(i.Members, bundle.Member{Title: "seed/more", Digest: digest.FromString("x")})
		}, say: `its "seed/more" is not`},
		"a tarball of elsewhere":    {sums: func(m map[string]string) { m[released(names[5])] = "" }, say: "which is not the"},
		"a list that is not signed": {say: "bad signature"},
	} {
		r := &reading{Options: Options{Policy: p.policy}, Listing: Listing{dir: t.TempDir()}, sums: map[string]string{}}
		r.manifest = Manifest{Version: "1.0.0", Counter: 7}
		l := seed.List{Name: "nox-mesh", Version: "1.0.0", Counter: 7, Architecture: "x86_64", PackageKey: strings.Repeat("ab", 20)}
		info := &bundle.Info{Name: "nox-mesh", Version: "1.0.0", Counter: 7, Architecture: "x86_64"}
		for _, name := range names {
			l.Files = append(l.Files, seed.File{Name: name, Size: 1, SHA256: sum([]byte(name))})
			r.sums[released(name)] = sum([]byte(name))
			info.Members = append(info.Members, bundle.Member{Title: "seed/" + name, Digest: digest.FromString(name)})
		}
		if c.list != nil {
			c.list(&l)
		}
		b, err := l.Encode()
		if err != nil {
			t.Fatal(err)
		}
		of := b
		if what == "a list that is not signed" {
			of = []byte("something else")
		}
		signature, err := trust.Sign(key, digest.FromBytes(of))
		if err != nil {
			t.Fatal(err)
		}
		for name, b := range map[string][]byte{list: b, list + ".sigstore.json": signature} {
			put(t, r, name, b)
			r.sums[name] = sum(b)
			in := map[string]string{list: "seed/release.json"}[name]
			if in == "" {
				in = "seed/release.json.sigstore.json"
			}
			info.Members = append(info.Members, bundle.Member{Title: in, Digest: digest.FromBytes(b)})
		}
		if r.Listing, err = List(r.dir); err != nil {
			t.Fatal(err)
		}
		slices.SortFunc(info.Members, func(a, b bundle.Member) int { return strings.Compare(a.Title, b.Title) })
		if c.sums != nil {
			c.sums(r.sums)
		}
		if c.info != nil {
			c.info(info)
		}
		err = r.seed("x86_64", "the bundle", info)
		if c.say == "" && err != nil || c.say != "" && (fault.KindOf(err) != fault.Refused || !strings.Contains(err.Error(), c.say)) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
