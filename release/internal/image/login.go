package image

import (
	"os"
	"path"
	"path/filepath"
	"strings"

	"oras.land/oras-go/v2/registry/remote/credentials"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// loginFiles are where "podman login", "skopeo login" and "docker login" write, the
// first that knows a registry counts: containers-auth.json(5).
func loginFiles() []string {
	if f := os.Getenv("REGISTRY_AUTH_FILE"); f != "" {
		return []string{f}
	}
	var files []string
	if dir := os.Getenv("XDG_RUNTIME_DIR"); dir != "" {
		files = append(files, filepath.Join(dir, "containers/auth.json"))
	}
	home, err := os.UserHomeDir()
	if dir := os.Getenv("XDG_CONFIG_HOME"); dir != "" {
		files = append(files, filepath.Join(dir, "containers/auth.json"))
	} else if err == nil {
		files = append(files, filepath.Join(home, ".config/containers/auth.json"))
	}
	if dir := os.Getenv("DOCKER_CONFIG"); dir != "" {
		files = append(files, filepath.Join(dir, "config.json"))
	} else if err == nil {
		files = append(files, filepath.Join(home, ".docker/config.json"))
	}
	return files
}

func credentialStores() ([]credentials.Store, error) {
	var stores []credentials.Store
	for _, f := range loginFiles() {
		s, err := credentials.NewStore(f, credentials.StoreOptions{})
		if err != nil {
			return nil, fault.Refusedf("cannot read the logins in %q: %w", f, err)
		}
		stores = append(stores, s)
	}
	return stores, nil
}

// loginKeys are what a login for a repository may be written under: podman's may be
// for a part of a registry, and Docker has a name of its own for its own.
func loginKeys(host, repository string) []string {
	var keys []string
	registry, _, _ := strings.Cut(repository, "/")
	if host == registry || registry == "docker.io" {
		for p := repository; p != "."; p = path.Dir(p) {
			keys = append(keys, p)
		}
	}
	return append(keys, credentials.ServerAddressFromHostname(host))
}
