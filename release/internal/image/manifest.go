package image

import (
	"context"
	"fmt"
	"slices"
	"strings"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// Docker's media types, which its own images and many registries have.
const (
	typeDockerManifest = "application/vnd.docker.distribution.manifest.v2+json"
	typeDockerList     = "application/vnd.docker.distribution.manifest.list.v2+json"
	typeDockerConfig   = "application/vnd.docker.container.image.v1+json"
	typeDockerLayer    = "application/vnd.docker.image.rootfs.diff.tar"
	// typeDockerSchema1 begins those of the manifests before 2016.
	typeDockerSchema1 = "application/vnd.docker.distribution.manifest.v1+"
)

// maxLayers is more than any engine puts together: Docker ends at 127, the kernel's
// overlay at 500 (OVL_MAX_STACK).
const maxLayers = 512

// layerTypes are what engines unpack.
var layerTypes = []string{
	v1.MediaTypeImageLayer, v1.MediaTypeImageLayerGzip, v1.MediaTypeImageLayerZstd,
	typeDockerLayer, typeDockerLayer + ".gzip", typeDockerLayer + ".zstd",
}

func isIndex(mediaType string) bool {
	return mediaType == v1.MediaTypeImageIndex || mediaType == typeDockerList
}

// open reads the manifest d and its configuration, and says what platform the
// image is for.
func open(ctx context.Context, from blobs, d v1.Descriptor) (*Image, platform, error) {
	if err := isImage(d); err != nil {
		return nil, platform{}, err
	}
	b, err := document(ctx, from, d)
	if err != nil {
		return nil, platform{}, fmt.Errorf("manifest: %w", err)
	}
	m, err := parseManifest(b, d)
	if err != nil {
		return nil, platform{}, fmt.Errorf("manifest %s: %w", d.Digest, err)
	}
	text, err := document(ctx, from, m.Config)
	if err != nil {
		return nil, platform{}, fmt.Errorf("configuration: %w", err)
	}
	c, err := parseConfig(text)
	if err == nil && len(c.RootFS.DiffIDs) != len(m.Layers) {
		err = fault.Refusedf("it is about %d layers, the manifest about %d", len(c.RootFS.DiffIDs), len(m.Layers))
	}
	if err != nil {
		return nil, platform{}, fmt.Errorf("configuration %s: %w", m.Config.Digest, err)
	}
	i := &Image{MediaType: d.MediaType, Manifest: b, Digest: d.Digest, Config: m.Config, Layers: m.Layers, blobs: from}
	return i, c.platform(), nil
}

func isImage(d v1.Descriptor) error {
	switch {
	case strings.HasPrefix(d.MediaType, typeDockerSchema1):
		return fault.Refusedf("it is an image of Docker's schema 1, which no engine of today writes").Hint("build it anew")
	case d.MediaType != v1.MediaTypeImageManifest && d.MediaType != typeDockerManifest:
		return fault.Refusedf("it is no container image: its type is %.128q", d.MediaType)
	}
	return nil
}

// parseManifest reads a manifest and holds that it is one of a container image
// that can go into a bundle whole.
func parseManifest(b []byte, d v1.Descriptor) (*v1.Manifest, error) {
	var m v1.Manifest
	if err := parse(b, &m); err != nil {
		return nil, err
	}
	switch {
	case m.SchemaVersion != 2:
		return nil, fault.Refusedf("its schema is %d, not 2", m.SchemaVersion)
	case m.MediaType != d.MediaType && (m.MediaType != "" || d.MediaType == typeDockerManifest):
		return nil, fault.Refusedf("its type is %.128q, not %q", m.MediaType, d.MediaType)
	case m.Config.MediaType != v1.MediaTypeImageConfig && m.Config.MediaType != typeDockerConfig:
		return nil, fault.Refusedf("it is no container image: its configuration is of type %.128q", m.Config.MediaType)
	case len(m.Layers) == 0:
		return nil, fault.Refusedf("it has no layers: there is nothing in it that could run")
	case len(m.Layers) > maxLayers:
		return nil, fault.Refusedf("it has %d layers, at most %d are read", len(m.Layers), maxLayers)
	}
	for _, l := range m.Layers {
		if err := checkLayer(l); err != nil {
			return nil, err
		}
	}
	return &m, nil
}

func checkLayer(l v1.Descriptor) error {
	if l.Size > maxBlob {
		return fault.Refusedf("layer %.80s has %d bytes: a bundle takes less than 8 GiB at once", l.Digest, l.Size).
			Hint("build the image in more, smaller layers")
	}
	if err := checkDescriptor(l, maxBlob); err != nil {
		return err
	}
	switch {
	case slices.Contains(layerTypes, l.MediaType):
		return nil
	case strings.HasSuffix(l.MediaType, "+encrypted"):
		return fault.Refusedf("layer %s is encrypted", l.Digest).Hint("decrypt the image first: whoever reads the bundle has no key of yours")
	case strings.Contains(l.MediaType, ".nondistributable.") || strings.Contains(l.MediaType, ".foreign."):
		return fault.Refusedf("layer %s is no part of the image: it is to be fetched from elsewhere (%.200q)", l.Digest, l.URLs)
	}
	return fault.Refusedf("layer %s is of type %.128q, which no engine unpacks", l.Digest, l.MediaType)
}

// A config is what we read of an image's configuration.
type config struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
	Variant      string `json:"variant"`
	RootFS       struct {
		DiffIDs []string `json:"diff_ids"`
	} `json:"rootfs"`
}

func parseConfig(b []byte) (*config, error) {
	var c config
	if err := parse(b, &c); err != nil {
		return nil, err
	}
	if c.Architecture == "" || c.OS == "" {
		return nil, fault.Refusedf("it says not what machines the image is for")
	}
	return &c, nil
}

func (c *config) platform() platform { return platform{c.OS, c.Architecture, c.Variant} }
