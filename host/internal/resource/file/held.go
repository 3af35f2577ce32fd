package file

import (
	"fmt"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/host/declaration"
	"github.com/nox-mesh/nox-mesh/host/internal/resource"
)

// held is the error when the wished content failed here and what is at the place is
// something else: laid down again it would fail again, at each pass. It is over when
// other content was applied since, if only to come back to this one: somebody wants
// it tried anew.
func (k *Kind) held(w *wish, have thing, prior *resource.Record) error {
	if k.failed == nil || w.Kind != file || w.file.Source == "" || have.Kind != file && have.Kind != nothing || have.Digest == w.Digest {
		return nil
	}
	if prior != nil {
		was, err := declaration.FromSpec("recorded", prior.Spec)
		if err != nil || was.File == nil || was.File.Digest() != w.Digest {
			return nil
		}
	}
	why := k.failed(w.file.Path, w.Digest)
	if why == "" {
		return nil
	}
	how := "held at the one before it until other content is declared"
	if have.Kind == nothing {
		how = "held until other content is declared, and the one before it, which was put back, is gone: it comes when its process is started again"
	}
	return resource.Held{Why: fmt.Sprintf("%s: %s; %s", short(w.Digest), why, how)}
}

// putBack reports whether the file t is there because the host put it back in place
// of what it had laid down: no one's change.
func (k *Kind) putBack(f *declaration.File, t thing) bool {
	return k.restored != nil && t.Kind == file && f.Source != "" && k.restored(f.Path, t.Digest)
}

// short is a digest for people.
func short(d digest.Digest) string {
	const enough = len("sha256:") + 12
	if len(d) <= enough {
		return string(d)
	}
	return string(d[:enough]) + "…"
}
