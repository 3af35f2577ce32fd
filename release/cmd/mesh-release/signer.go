package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/internal/cli"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/release/internal/keys"
	"github.com/nox-mesh/nox-mesh/release/internal/signing"
)

// signing adds the flags of a command that signs.
func (p *program) signing(c *cobra.Command) {
	c.Flags().StringVar(&p.keys, "keys", "", "directory of the publisher's keys")
	p.passphraseFlag(c)
}

func (p *program) passphraseFlag(c *cobra.Command) {
	c.Flags().StringVar(&p.passphraseFile, "passphrase-file", "", "file that holds the passphrase alone, - for standard input (or NOX_PASSPHRASE_FILE; else it is asked for)")
}

// signer opens the release key and reads the chain of roots beside it.
func (p *program) signer() (*signing.Signer, error) {
	defer p.forget()
	return p.releaseKey()
}

// publisher opens all keys that a release takes.
func (p *program) publisher() (*signing.Signer, error) {
	defer p.forget()
	s, err := p.releaseKey()
	if err != nil {
		return nil, err
	}
	s.Packages, err = p.packageKey()
	return s, err
}

func (p *program) releaseKey() (*signing.Signer, error) {
	if p.keys == "" {
		return nil, fault.Usagef("cannot sign: no keys are named").Hint("give --keys DIR")
	}
	roots, err := keys.Roots(p.keys)
	if err != nil {
		return nil, err
	}
	key, err := keys.Open(p.keys, keys.ReleaseKey, p.passphrase)
	if err != nil {
		return nil, err
	}
	s, err := signing.New(key, roots)
	if err != nil {
		return nil, err
	}
	id, err := trust.KeyID(key.Public())
	if err != nil {
		return nil, err
	}
	p.warnOfSeen(p.keys)
	version, _ := s.Policy.Root()
	p.log().Debug("the release key is open", "key", id, "root", version)
	return s, nil
}

// packageKey opens the key that signs for pacman.
func (p *program) packageKey() (signing.Packages, error) {
	defer p.forget()
	key, err := keys.OpenPackage(p.keys, p.passphrase)
	if err != nil {
		return nil, err
	}
	p.log().Debug("the package key is open", "key", key.Fingerprint())
	return signing.With(key), nil
}

// passphrase asks once, however many keys it opens. It is not changed by who gets
// it, and gone once they are open.
func (p *program) passphrase() ([]byte, error) {
	if p.secret == nil {
		var err error
		if p.secret, err = p.ask(false); err != nil {
			return nil, err
		}
	}
	return p.secret, nil
}

// forget clears the passphrase: what a program works on for minutes afterwards needs
// it no more.
func (p *program) forget() {
	clear(p.secret)
	p.secret = nil
}

// warnOfSeen tells of private keys in dir that others can read.
func (p *program) warnOfSeen(dir string) {
	if p.quiet {
		return
	}
	for _, file := range keys.Seen(dir) {
		fmt.Fprintln(p.std.Err, cli.OneLine(fmt.Sprintf("warning: others can read %q: nothing but its passphrase keeps it from them; chmod go-rwx %s", file, fault.Word(file))))
	}
}
