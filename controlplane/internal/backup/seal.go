package backup

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"filippo.io/age"

	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// workFactor is log2 of scrypt's N, what the tool age itself takes: a second, and
// 256 MiB. A file that asks for more than its reader would pay is refused.
const workFactor = 18

// A Lock is what closes a backup, or opens one.
type Lock struct {
	recipients []age.Recipient
	identities []age.Identity
}

// Passphrase is the lock that a passphrase is the key to, both ways.
func Passphrase(secret []byte) (Lock, error) {
	r, err := age.NewScryptRecipient(string(secret))
	if err != nil {
		return Lock{}, fault.Usagef("cannot use the passphrase: %w", err)
	}
	i, err := age.NewScryptIdentity(string(secret))
	if err != nil {
		return Lock{}, fault.Usagef("cannot use the passphrase: %w", err)
	}
	r.SetWorkFactor(workFactor)
	i.SetMaxWorkFactor(workFactor)
	return Lock{[]age.Recipient{r}, []age.Identity{i}}, nil
}

// Recipients is a lock that only others open.
func Recipients(names []string) (l Lock, err error) {
	for _, n := range names {
		r, err := age.ParseX25519Recipient(n)
		if err != nil {
			return l, fault.Usagef("cannot use recipient %.80q: it is no public key of age", n).
				Hint("it begins with age1, as age-keygen prints it")
		}
		l.recipients = append(l.recipients, r)
	}
	return l, nil
}

// Identities opens what was closed to recipients; r is a file of age-keygen.
func Identities(r io.Reader) (Lock, error) {
	ids, err := age.ParseIdentities(r)
	if err != nil {
		// Its words may quote the file, which is a secret.
		return Lock{}, fault.Usagef("cannot use the identity: the file is not one of age-keygen").
			Hint("open it with age -d first, if it is closed itself")
	}
	return Lock{identities: ids}, nil
}

// Opens says whether the lock can also open.
func (l Lock) Opens() bool { return len(l.identities) > 0 }

// Seal closes what is written; Close ends it.
func (l Lock) Seal(w io.Writer) (io.WriteCloser, error) {
	c, err := age.Encrypt(w, l.recipients...)
	if err != nil {
		return nil, fmt.Errorf("cannot encrypt: %w", err)
	}
	return c, nil
}

// Open opens a file. What is wrong with it is said when it is met.
func (l Lock) Open(r io.Reader) (io.Reader, error) {
	src := &system{r: r}
	in := bufio.NewReader(src)
	const intro = "age-encryption.org/v1\n"
	if b, err := in.Peek(len(intro)); string(b) != intro {
		if src.err != nil {
			return nil, src.err
		}
		if err != nil && len(b) == 0 {
			return nil, damaged("it is empty")
		}
		return nil, damaged("it does not begin as a backup does")
	}
	out, err := age.Decrypt(in, l.identities...)
	var none *age.NoIdentityMatchError
	switch {
	case src.err != nil:
		return nil, src.err
	case errors.As(err, &none):
		return nil, fault.Refusedf("it opens with another passphrase or key, or its beginning is damaged").
			Hint("give the one it was closed with: --passphrase-file FILE, or --identity FILE for a recipient's")
	case err != nil:
		return nil, damaged(err.Error())
	}
	return &opened{out, src}, nil
}

// A system is a reader whose own errors are told from what was read.
type system struct {
	r   io.Reader
	err error
}

func (s *system) Read(b []byte) (int, error) {
	n, err := s.r.Read(b)
	if err != nil && err != io.EOF {
		s.err = fault.Failedf("it cannot be read: %w", err)
		err = s.err
	}
	return n, err
}

// opened tells what is wrong with the file in our words.
type opened struct {
	io.Reader
	from *system
}

func (o *opened) Read(b []byte) (int, error) {
	n, err := o.Reader.Read(b)
	switch {
	case err == nil || err == io.EOF:
	case o.from.err != nil:
		err = o.from.err
	case errors.Is(err, io.ErrUnexpectedEOF):
		err = damaged("it is cut")
	default:
		err = damaged("it was changed after it was written, or cut")
	}
	return n, err
}
