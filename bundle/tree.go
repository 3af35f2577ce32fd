package bundle

import (
	"fmt"
	"slices"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/nox-mesh/nox-mesh/bundle/internal/canonical"
)

// A tree is what D and the manifests under it mention, in the order of the
// file. Reader and builder walk the same one, which is what makes the order a
// rule and not a habit.
type tree struct {
	// blame says whose fault it is when the tree is wrong.
	blame func(error) error
	// pending are manifests that were mentioned and not yet read, the next one
	// first. A manifest's own come before its siblings: depth first.
	pending []v1.Descriptor
	// mentioned holds the size of everything that was mentioned.
	mentioned map[digest.Digest]mention
	// blobs are all blobs, each once: in the order of first mention, and after the
	// walk in that of the file.
	blobs []v1.Descriptor

	declarations []Member
	members      []Member
	titles       map[string]bool
	// images are the titles of images, by each manifest that is of one.
	images map[digest.Digest]string
	// expansions are the compressed blobs, and expanded the sizes of what is in
	// them.
	expansions map[digest.Digest]expansion
	expanded   map[digest.Digest]int64

	manifests        int
	manifestBytes    int64
	declarationBytes int64
	size             int64
}

type mention struct {
	size     int64
	manifest bool
}

// A fetch gives a document by its descriptor, and no other: the next member of a
// file, a blob of a store, what is about to be built.
type fetch func(v1.Descriptor) ([]byte, error)

// newTree begins with what D mentions. Each error about the tree is passed through
// blame; a nil one stays nil.
func newTree(index *v1.Index, blame func(error) error) (*tree, error) {
	t := &tree{
		blame:     blame,
		mentioned: map[digest.Digest]mention{}, titles: map[string]bool{}, images: map[digest.Digest]string{},
	}
	for _, d := range index.Manifests {
		if err := t.direct(d); err != nil {
			return nil, blame(err)
		}
	}
	return t, blame(t.push(index.Manifests))
}

// walk reads every manifest under D, in the order of the file. An error of get is
// returned as it is.
func (t *tree) walk(get fetch) error {
	for len(t.pending) > 0 {
		d := t.pending[0]
		t.pending = t.pending[1:]
		b, err := get(d)
		if err != nil {
			return err
		}
		if err := t.read(d, b); err != nil {
			return t.blame(err)
		}
	}
	return t.blame(t.finish())
}

// direct holds what D may say of a manifest: that it is one of ours and no more, or
// that it is an image, and its title.
func (t *tree) direct(d v1.Descriptor) error {
	title := titled(d)
	switch {
	case d.Platform != nil:
		// With one, podman silently loads the first image only.
		return refuse("bundle index: the descriptor of %s has a platform", clip(string(d.Digest)))
	case !isImage(d) && plain(d):
		return nil
	case !isImage(d) || d.ArtifactType != "" || len(d.URLs) > 0 || d.Data != nil || len(d.Annotations) != 1 || !ValidImageTitle(title):
		return refuse("bundle index: the descriptor of %s is neither plain nor that of an image with a title", clip(string(d.Digest)))
	case t.titles[title]:
		return refuse("bundle index: the title %q is there twice", title)
	case t.images[d.Digest] != "":
		return refuse("bundle index: image %q is there under another title, %q", title, t.images[d.Digest])
	}
	t.titles[title], t.images[d.Digest] = true, title
	return nil
}

// isImage says of a descriptor in D whether it is that of an image: all that is
// not ours is.
func isImage(d v1.Descriptor) bool {
	return d.ArtifactType != TypeDeclaration && d.ArtifactType != TypePayload
}

// push puts the manifests that one document mentions before all others.
func (t *tree) push(ds []v1.Descriptor) error {
	var first []v1.Descriptor
	for _, d := range ds {
		if !isManifest(d.MediaType) {
			return refuse("%s is of type %q, not a manifest", clip(string(d.Digest)), clip(d.MediaType))
		}
		known, err := t.mention(d, maxManifest, true)
		if err != nil {
			return err
		}
		if known {
			continue
		}
		t.manifests++
		t.manifestBytes += d.Size
		if t.manifests > maxManifests || t.manifestBytes > maxManifestBytes {
			return refuse("more than %d manifests or %d bytes of them", maxManifests, maxManifestBytes)
		}
		first = append(first, d)
	}
	t.pending = slices.Concat(first, t.pending)
	return nil
}

// mention notes that d is mentioned, and reports whether it was before.
func (t *tree) mention(d v1.Descriptor, max int64, manifest bool) (bool, error) {
	if err := checkDescriptor(d, max); err != nil {
		return false, err
	}
	m, ok := t.mentioned[d.Digest]
	if ok && (m.size != d.Size || m.manifest != manifest) {
		return false, refuse("%s is mentioned twice, with %d and with %d bytes, or as manifest and as blob", d.Digest, m.size, d.Size)
	}
	t.mentioned[d.Digest] = mention{d.Size, manifest}
	return ok, nil
}

// read reads the manifest that d describes; b has its digest.
func (t *tree) read(d v1.Descriptor, b []byte) error {
	switch {
	case d.ArtifactType == TypeDeclaration || d.ArtifactType == TypePayload:
		return t.readOurs(d, b)
	case d.MediaType == v1.MediaTypeImageIndex || d.MediaType == mediaTypeDockerList:
		var x v1.Index
		if err := canonical.Foreign(b, &x); err != nil {
			return refuse("manifest %s: %w", d.Digest, err)
		}
		if x.MediaType != "" && x.MediaType != d.MediaType {
			return refuse("manifest %s: its type is %q, not %q", d.Digest, clip(x.MediaType), d.MediaType)
		}
		for _, m := range x.Manifests {
			if t.images[m.Digest] == "" {
				t.images[m.Digest] = t.images[d.Digest]
			}
		}
		return t.push(x.Manifests)
	default:
		var m v1.Manifest
		if err := canonical.Foreign(b, &m); err != nil {
			return refuse("manifest %s: %w", d.Digest, err)
		}
		if m.MediaType != "" && m.MediaType != d.MediaType {
			return refuse("manifest %s: its type is %q, not %q", d.Digest, clip(m.MediaType), d.MediaType)
		}
		image := t.images[d.Digest]
		if err := t.blob(m.Config, image+", configuration", false); err != nil {
			return err
		}
		for i, l := range m.Layers {
			if err := t.blob(l, fmt.Sprintf("%s, layer %d of %d", image, i+1, len(m.Layers)), false); err != nil {
				return err
			}
		}
		return nil
	}
}

func (t *tree) readOurs(d v1.Descriptor, b []byte) error {
	m, err := parseOurs(b, d.ArtifactType)
	if err != nil {
		return err
	}
	if m.Subject != nil || m.Annotations != nil {
		return refuse("manifest %s: it has a subject or annotations", d.Digest)
	}
	if _, err := t.mention(m.Config, 2, false); err != nil {
		return err
	}
	if d.ArtifactType == TypeDeclaration && len(m.Layers) != 1 {
		return refuse("manifest %s: it has %d declarations, not 1", d.Digest, len(m.Layers))
	}
	for _, l := range m.Layers {
		title := titled(l)
		switch {
		case !isTitle(title) || !canonicalAnnotations(l) || len(l.URLs) > 0 || l.Data != nil || l.Platform != nil:
			return refuse("manifest %s: layer %s has no title, or more than that", d.Digest, clip(string(l.Digest)))
		case t.titles[title]:
			return refuse("manifest %s: the title %q is there twice", d.Digest, title)
		case (d.ArtifactType == TypeDeclaration) != (l.MediaType == MediaTypeDeclaration),
			d.ArtifactType == TypePayload && !isPayload(l.MediaType):
			return refuse("manifest %s: layer %q is of type %q", d.Digest, title, clip(l.MediaType))
		}
		t.titles[title] = true
		if err := t.blob(l, title, true); err != nil {
			return err
		}
		if l.MediaType == MediaTypeFileZstd {
			if err := t.expansion(l); err != nil {
				return err
			}
			m := &t.members[len(t.members)-1]
			m.Content, m.ContentSize = t.expansions[l.Digest].to, t.expansions[l.Digest].size
		}
		if l.MediaType == MediaTypeDeclaration {
			t.declarations = append(t.declarations, t.members[len(t.members)-1])
			if t.declarationBytes += l.Size; t.declarationBytes > maxDeclarationBytes {
				return refuse("more than %d bytes of declarations", maxDeclarationBytes)
			}
		}
	}
	return nil
}

// blob notes a blob that a manifest mentions; again says that it is told under each
// of its titles.
func (t *tree) blob(d v1.Descriptor, title string, again bool) error {
	if isManifest(d.MediaType) {
		return refuse("%s is a manifest among the layers of another", d.Digest)
	}
	known, err := t.mention(d, maxMember, false)
	if err != nil {
		return err
	}
	if !known {
		t.blobs = append(t.blobs, d)
		t.size += d.Size
	}
	if !known || again {
		t.members = append(t.members, Member{Digest: d.Digest, Size: d.Size, MediaType: d.MediaType, Title: title})
	}
	return nil
}

// finish holds what can be said of all of it, and puts the small blobs before the
// large ones.
func (t *tree) finish() error {
	if len(t.declarations) == 0 {
		return refuse("it holds no declaration")
	}
	if err := t.settled(); err != nil {
		return err
	}
	slices.SortStableFunc(t.blobs, func(a, b v1.Descriptor) int {
		switch small := isSmall(a.MediaType); {
		case small == isSmall(b.MediaType):
			return 0
		case small:
			return -1
		default:
			return 1
		}
	})
	return nil
}

// tell puts what the tree holds into info.
func (t *tree) tell(info *Info) {
	info.Declarations, info.Members, info.Size = t.declarations, t.members, t.size
}
