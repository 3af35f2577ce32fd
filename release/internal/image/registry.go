package image

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/errcode"
	"oras.land/oras-go/v2/registry/remote/retry"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// answerWithin is how long a registry may take to begin its answer. How long the
// content takes is the network's, and ended by the context.
const answerWithin = time.Minute

// A registry is one repository of one.
type registry struct{ *remote.Repository }

func (r registry) open(ctx context.Context, d v1.Descriptor) (content io.ReadCloser, err error) {
	if isIndex(d.MediaType) || d.MediaType == v1.MediaTypeImageManifest || d.MediaType == typeDockerManifest {
		content, err = r.Manifests().Fetch(ctx, d)
	} else {
		content, err = r.Blobs().Fetch(ctx, d)
	}
	if err != nil {
		return nil, r.said(err)
	}
	return content, nil
}

// said is what a registry's refusal means to a person.
func (r registry) said(err error) error {
	var answer *errcode.ErrorResponse
	switch {
	case errors.Is(err, errdef.ErrNotFound):
		return fault.Refusedf("it is not there")
	case errors.As(err, &answer) && (answer.StatusCode == http.StatusUnauthorized || answer.StatusCode == http.StatusForbidden):
		return fault.Failedf("%w", err).Hint("log in first, with \"podman login %[1]s\" or \"docker login %[1]s\"", r.Reference.Registry)
	}
	return err
}

func readRegistry(ctx context.Context, ref Reference, want platform) (*Image, error) {
	repo, err := repository(ref)
	if err != nil {
		return nil, err
	}
	r := registry{repo}
	d, err := r.Manifests().Resolve(ctx, string(ref.digest))
	if err != nil {
		return nil, r.said(err)
	}
	d.Digest = ref.digest
	return pick(ctx, r, []v1.Descriptor{d}, want)
}

func repository(ref Reference) (*remote.Repository, error) {
	repo, err := remote.NewRepository(ref.path)
	if err != nil {
		return nil, fault.Refusedf("%w", err)
	}
	login, err := logins(ref.path)
	if err != nil {
		return nil, err
	}
	here := isHere(repo.Reference.Registry)
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.ResponseHeaderTimeout = answerWithin
	client := &auth.Client{
		Client:     &http.Client{Transport: retry.NewTransport(transport)},
		Cache:      auth.NewCache(),
		Credential: login,
	}
	if here {
		// Whoever is on this machine may ask on this machine for a password.
		client.BlockedRealmPrefixes = []netip.Prefix{}
	}
	repo.Client = client
	repo.PlainHTTP = here
	repo.MaxMetadataBytes = maxDocument
	return repo, nil
}

// isHere reports whether a registry is on this machine, where there is nobody to
// listen and TLS is not asked for, as with Docker and podman.
func isHere(hostport string) bool {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	}
	ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// logins gives what podman, skopeo and Docker were told for a repository.
func logins(path string) (auth.CredentialFunc, error) {
	stores, err := credentialStores()
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, host string) (auth.Credential, error) {
		for _, s := range stores {
			for _, key := range loginKeys(host, path) {
				c, err := s.Get(ctx, key)
				if err != nil {
					return auth.EmptyCredential, fmt.Errorf("cannot log in to %q: %w", host, err)
				}
				if c != auth.EmptyCredential {
					return c, nil
				}
			}
		}
		return auth.EmptyCredential, nil
	}, nil
}
