package attest

import (
	"bytes"
	"cmp"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/nox-mesh/nox-mesh/internal/cli"
)

// A Program is what an SBOM is of.
type Program struct {
	// Name and Version are as in the release: "mesh-host", "1.0.0".
	Name, Version string
	// SHA256 is that of the binary, in hex.
	SHA256 string
	// Time is that of the release.
	Time time.Time
}

// The parts of CycloneDX 1.6 that are written
// (https://cyclonedx.org/docs/1.6/json/).
type (
	bom struct {
		Schema       string       `json:"$schema"`
		Format       string       `json:"bomFormat"`
		SpecVersion  string       `json:"specVersion"`
		Version      int          `json:"version"`
		Metadata     metadata     `json:"metadata"`
		Components   []component  `json:"components"`
		Dependencies []dependency `json:"dependencies"`
	}
	metadata struct {
		Timestamp string    `json:"timestamp"`
		Tools     tools     `json:"tools"`
		Component component `json:"component"`
	}
	tools struct {
		Components []component `json:"components"`
	}
	component struct {
		Type       string     `json:"type"`
		Ref        string     `json:"bom-ref,omitempty"`
		Name       string     `json:"name"`
		Version    string     `json:"version,omitempty"`
		Hashes     []sum      `json:"hashes,omitempty"`
		Purl       string     `json:"purl,omitempty"`
		Properties []property `json:"properties,omitempty"`
	}
	sum struct {
		Algorithm string `json:"alg"`
		Content   string `json:"content"`
	}
	property struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
	dependency struct {
		Ref string   `json:"ref"`
		On  []string `json:"dependsOn"`
	}
)

// SBOM returns the CycloneDX document of a Go binary: the modules that
// debug/buildinfo finds in it, sorted by path, the standard library as "std". The
// hash of a module is its sum of go.sum ("h1:", over the list of its files), in
// hex, as cyclonedx-gomod writes it. A module that was replaced is the one that
// took its place.
func SBOM(binary []byte, p Program) ([]byte, error) {
	info, err := buildinfo.Read(bytes.NewReader(binary))
	if err != nil {
		return nil, fmt.Errorf("cannot make the SBOM of %q: %w", p.Name, err)
	}
	main := component{
		Type: "application", Name: p.Name, Version: p.Version, Hashes: []sum{{"SHA-256", p.SHA256}},
		Purl: purl(info.Main.Path, p.Version, "") + subpath(info),
	}
	main.Ref = main.Purl
	for _, s := range info.Settings {
		if s.Key == "GOOS" || s.Key == "GOARCH" || s.Key == "CGO_ENABLED" {
			main.Properties = append(main.Properties, property{"cdx:gomod:build:env:" + s.Key, s.Value})
		}
	}
	b := bom{
		Schema: "http://cyclonedx.org/schema/bom-1.6.schema.json", Format: "CycloneDX", SpecVersion: "1.6", Version: 1,
		Metadata: metadata{
			Timestamp: p.Time.UTC().Format(time.RFC3339),
			Tools:     tools{[]component{{Type: "application", Name: "mesh-release"}}},
			Component: main,
		},
	}
	std := strings.TrimPrefix(info.GoVersion, "go")
	b.Components = []component{{Type: "library", Name: "std", Version: info.GoVersion, Purl: purl("std", std, "?type=module")}}
	for _, d := range info.Deps {
		if d.Replace != nil {
			d = d.Replace
		}
		c, err := module(d)
		if err != nil {
			return nil, fmt.Errorf("cannot make the SBOM of %q: %w", p.Name, err)
		}
		b.Components = append(b.Components, c)
	}
	slices.SortFunc(b.Components, func(x, y component) int { return cmp.Compare(x.Name, y.Name) })
	of := dependency{Ref: main.Ref, On: []string{}}
	for i := range b.Components {
		b.Components[i].Ref = b.Components[i].Purl
		of.On = append(of.On, b.Components[i].Ref)
	}
	b.Dependencies = []dependency{of}
	for _, ref := range of.On {
		// Which module needs which is not in a binary.
		b.Dependencies = append(b.Dependencies, dependency{ref, []string{}})
	}
	var out bytes.Buffer
	err = cli.JSON(&out, b)
	return out.Bytes(), err
}

func module(m *debug.Module) (component, error) {
	c := component{Type: "library", Name: m.Path, Version: m.Version, Purl: purl(m.Path, m.Version, "?type=module")}
	if m.Sum == "" {
		return c, nil
	}
	h1, ok := strings.CutPrefix(m.Sum, "h1:")
	raw, err := base64.StdEncoding.DecodeString(h1)
	if !ok || err != nil || len(raw) != 32 {
		return c, fmt.Errorf("module %q has the sum %.80q, which is not known", m.Path, m.Sum)
	}
	c.Hashes = []sum{{"SHA-256", hex.EncodeToString(raw)}}
	return c, nil
}

// purl is a package URL (https://github.com/package-url/purl-spec). The path
// keeps its case: Go's module paths have one.
func purl(path, version, qualifiers string) string {
	return "pkg:golang/" + path + "@" + strings.ReplaceAll(version, "+", "%2B") + qualifiers
}

// subpath is the command's folder in its module.
func subpath(info *debug.BuildInfo) string {
	if sub, ok := strings.CutPrefix(info.Path, info.Main.Path+"/"); ok {
		return "#" + sub
	}
	return ""
}

// StateSBOM states that the program has the SBOM. The subject is the binary.
func StateSBOM(sbom []byte, p Program) Statement {
	return Statement{PredicateType: SBOMType, Subjects: []Subject{{p.Name, p.SHA256}}, Predicate: json.RawMessage(sbom)}
}

// HoldSBOM holds that s states just sbom, of p.
func HoldSBOM(s Statement, sbom []byte, p Program) error {
	if s.PredicateType != SBOMType || len(s.Subjects) != 1 || s.Subjects[0] != (Subject{p.Name, p.SHA256}) {
		return fmt.Errorf("it is not about %q of this release", p.Name)
	}
	file, err := compact(json.RawMessage(sbom))
	if err != nil {
		return err
	}
	if !bytes.Equal(file, s.Predicate) {
		return fmt.Errorf("it does not say what the SBOM says")
	}
	var b bom
	if err := json.Unmarshal(sbom, &b); err != nil {
		return err
	}
	c := b.Metadata.Component
	if b.Format != "CycloneDX" || b.SpecVersion != "1.6" || c.Name != p.Name || c.Version != p.Version ||
		!slices.Equal(c.Hashes, []sum{{"SHA-256", p.SHA256}}) || b.Metadata.Timestamp != p.Time.UTC().Format(time.RFC3339) {
		return fmt.Errorf("the SBOM is of another program")
	}
	return nil
}
