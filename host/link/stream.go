package link

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/opencontainers/go-digest"

	"github.com/nox-mesh/nox-mesh/host/declaration"
)

// MaxLine bounds one line of the link, line feed included, in bytes: a
// declaration of MaxInline in base64, and room for the rest.
const MaxLine = 128 << 10

// A Writer writes messages, one JSON object a line. It does not flush and sets
// no deadline: those are the connection's.
type Writer struct{ w io.Writer }

// NewWriter returns a Writer on w.
func NewWriter(w io.Writer) *Writer { return &Writer{w} }

// Write writes m in one call of the underlying Write. A message that the other
// end would not accept is an error, and nothing is written.
func (w *Writer) Write(m Message) error {
	if err := m.check(); err != nil {
		return fmt.Errorf("cannot send a message: %w", err)
	}
	b, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("cannot send a message: %w", err)
	}
	if len(b) >= MaxLine {
		return fmt.Errorf("cannot send a message: it is %d bytes long, at most %d may be", len(b), MaxLine-1)
	}
	_, err = w.w.Write(append(b, '\n'))
	return err
}

// A Reader reads messages. It holds at most MaxLine bytes.
type Reader struct{ r *bufio.Reader }

// NewReader returns a Reader on r.
func NewReader(r io.Reader) *Reader { return &Reader{bufio.NewReaderSize(r, MaxLine)} }

// Next returns the next message: one that check has passed, or one of a type
// this program does not know, to be passed over. At the end of the stream it
// is io.EOF; in the middle of a line, io.ErrUnexpectedEOF.
func (r *Reader) Next() (Message, error) {
	line, err := r.r.ReadSlice('\n')
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		return Message{}, fmt.Errorf("cannot read a message: its line is longer than %d bytes", MaxLine)
	case err == io.EOF && len(line) > 0:
		return Message{}, io.ErrUnexpectedEOF
	case err != nil:
		return Message{}, err
	}
	// Members this program does not know are a newer control plane's.
	var m Message
	if err := json.Unmarshal(line, &m); err != nil {
		return Message{}, fmt.Errorf("cannot read a message: %w", err)
	}
	if err := m.check(); err != nil {
		return Message{}, fmt.Errorf("cannot read a message: %w", err)
	}
	return m, nil
}

func (m Message) check() error {
	switch m.Type {
	case "":
		return errors.New("it has no type")
	case MessageDeclaration:
		if m.Declaration == nil {
			return errors.New("it brings no declaration")
		}
		return m.Declaration.check()
	case MessageAddresses:
		return CheckAddresses(m.Addresses)
	case MessageDrain:
		if m.WindowSeconds < 0 {
			return errors.New("its window is negative")
		}
	}
	return nil
}

func (d DeclarationMessage) check() error {
	switch got, err := digest.Parse(d.Digest); {
	case err != nil || got.Algorithm() != digest.SHA256:
		return errors.New("the digest of its declaration is not a SHA-256")
	case CheckID(d.Mesh) != nil:
		return errors.New("its declaration has no mesh id")
	case d.Size < 1 || d.Size > declaration.MaxSize:
		return fmt.Errorf("its declaration is %d bytes long, 1 to %d may be", d.Size, declaration.MaxSize)
	case d.Document == nil:
		return nil
	case int64(len(d.Document)) != d.Size || len(d.Document) > MaxInline:
		return errors.New("its declaration is not as long as it says, or too long to be inline")
	}
	return nil
}

// Check says whether doc is the declaration the message names.
func (d DeclarationMessage) Check(doc []byte) error {
	if int64(len(doc)) != d.Size {
		return fmt.Errorf("the declaration is %d bytes long, not %d", len(doc), d.Size)
	}
	if got := digest.FromBytes(doc); got.String() != d.Digest {
		return fmt.Errorf("the declaration is %s, not %s", got, d.Digest)
	}
	return nil
}
