package keys

import (
	"fmt"
	"path/filepath"

	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/internal/durable"
)

// Export writes what a verifier needs, and nothing secret, into out: the chain
// of release roots, the release key and the package key that sign now, and the
// keyring for pacman-key(8). It returns the names of the files. What an earlier
// export of these keys left is brought up to date, oldest root first, so that out is
// a chain one can trust at every instant; where anything else has one of the names,
// nothing is written.
func Export(dir, out string) ([]string, error) {
	h, err := readHistory(dir)
	if err != nil {
		return nil, err
	}
	release, err := h.current(trust.ScopeRelease)
	if err != nil {
		return nil, err
	}
	signs, _, err := h.packages()
	if err != nil {
		return nil, err
	}
	armored, err := armoredPublic(signs.key)
	if err != nil {
		return nil, err
	}
	keyring, err := PacmanKeyring(h.files)
	if err != nil {
		return nil, err
	}
	var files []public
	for i, f := range h.files {
		files = append(files, public{fmt.Sprintf("%d.root.json", i+1), f, nobodys})
	}
	files = append(files,
		public{ReleasePublic, []byte(release.key.Public), h.hasReleaseKey},
		public{PackagePublic, armored, h.hasPackageKey},
		public{KeyringGPG, keyring.GPG, h.hasKeyring},
		public{KeyringTrusted, keyring.Trusted, h.hasFingerprints},
		public{KeyringRevoked, keyring.Revoked, h.hasFingerprints})
	if err := h.mayExport(out, files); err != nil {
		return nil, err
	}
	if err := durable.MkdirAll(out, 0o755); err != nil {
		return nil, fmt.Errorf("cannot export keys: %w", err)
	}
	var names []string
	for _, f := range files {
		if err := durable.WriteFile(filepath.Join(out, f.name), f.content, 0o644); err != nil {
			return nil, fmt.Errorf("cannot export keys: %w", err)
		}
		names = append(names, f.name)
	}
	return names, nil
}
