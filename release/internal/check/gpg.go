package check

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/internal/durable"
)

// gpg verifies every OpenPGP signature beside its file, with the package keys
// that the release root names and no other.
type gpg struct{}

func (gpg) needs() []string { return []string{"gpg"} }

func (gpg) how() string { return "every .sig beside its file, by the package keys of the release root" }

var gpgVersion = regexp.MustCompile(`^gpg \(.*\) (\S+)`)

func (gpg) version(ctx context.Context, b bench) (string, error) {
	out, err := b.run(ctx, "gpg", "--homedir", b.dir, "--version")
	if err != nil {
		return "", fmt.Errorf("it does not run: %w", err)
	}
	m := gpgVersion.FindStringSubmatch(out)
	if m == nil {
		return "", errors.New("it does not say its version")
	}
	return m[1], nil
}

func (gpg) testify(ctx context.Context, b bench, r *reading) (int, error) {
	home, err := newKeyring(ctx, b, r.Policy)
	if err != nil {
		return 0, err
	}
	dir, err := filepath.Abs(r.dir)
	if err != nil {
		return 0, err
	}
	n := 0
	for _, f := range r.manifest.Files {
		name, ok := strings.CutSuffix(f.Name, trust.PackageSignatureSuffix)
		if !ok {
			continue
		}
		out, err := b.run(ctx, "gpg", quietly(home, "--verify", filepath.Join(dir, f.Name), filepath.Join(dir, name))...)
		if err == nil {
			err = goodSignature(out, r.Policy)
		}
		if err != nil {
			return n, refuses(ctx, "gpg", name, err)
		}
		n++
	}
	return n, nil
}

// quietly is how gpg is called here: it prints what it means for programs.
func quietly(home string, args ...string) []string {
	return append([]string{"--homedir", home, "--batch", "--no-tty", "--status-fd", "1"}, args...)
}

// newKeyring makes a home for gpg that holds the package keys and trusts them.
// What is in its gpg.conf holds for pacman's calls too: no agent is started, and
// nothing is looked for on the network.
func newKeyring(ctx context.Context, b bench, p *trust.Policy) (home string, err error) {
	home = b.path("gpg")
	if err := os.Mkdir(home, 0o700); err != nil {
		return "", err
	}
	var keys, owners []byte
	for _, k := range p.Keys(trust.ScopePackage) {
		keyring, err := k.Keyring()
		if err != nil {
			return "", err
		}
		keys = append(keys, keyring...)
		owners = fmt.Appendf(owners, "%s:6:\n", strings.ToUpper(k.ID))
	}
	for name, content := range map[string][]byte{
		"gpg/gpg.conf": []byte("no-autostart\ndisable-dirmngr\nno-auto-key-retrieve\nno-auto-key-locate\n"),
		"keys":         keys, "owners": owners,
	} {
		if err := durable.WriteFile(b.path(name), content, 0o600); err != nil {
			return "", err
		}
	}
	for _, args := range [][]string{{"--import", b.path("keys")}, {"--import-ownertrust", b.path("owners")}} {
		if _, err := b.run(ctx, "gpg", quietly(home, args...)...); err != nil {
			return "", refuses(ctx, "gpg", "the package keys of the release root", err)
		}
	}
	return home, nil
}

// goodSignature reads what gpg says for programs (doc/DETAILS of its source): one
// good signature, valid, by a package key that is trusted, and no other.
func goodSignature(status string, p *trust.Policy) error {
	signatures, good, valid := 0, 0, 0
	for line := range strings.Lines(status) {
		words := strings.Fields(line)
		if len(words) < 2 || words[0] != "[GNUPG:]" {
			continue
		}
		switch words[1] {
		case "NEWSIG":
			signatures++
		case "GOODSIG":
			good++
		case "VALIDSIG":
			// The last word is the fingerprint of the primary key.
			for _, k := range p.Keys(trust.ScopePackage) {
				if strings.EqualFold(words[len(words)-1], k.ID) {
					valid++
				}
			}
		case "BADSIG", "ERRSIG", "EXPSIG", "EXPKEYSIG", "REVKEYSIG":
			return errors.New(strings.Join(words[1:], " "))
		}
	}
	if signatures != 1 || good != 1 || valid != 1 {
		return fmt.Errorf("of %d signatures %d are good and %d by a package key", signatures, good, valid)
	}
	return nil
}
