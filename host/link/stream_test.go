package link_test

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/nox-mesh/nox-mesh/host/link"
)

const digestA = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

func TestMessagesAreReadAsTheyWereWritten(t *testing.T) {
	doc := bytes.Repeat([]byte("x"), link.MaxInline)
	sent := []link.Message{
		{Type: link.MessageHeartbeat},
		{Type: link.MessageDeclaration, Declaration: &link.DeclarationMessage{Mesh: "m1", Epoch: 2, Generation: 3, Digest: digestA, Size: link.MaxInline, Document: doc}},
		{Type: link.MessageAddresses, Addresses: []string{"a:1"}},
		{Type: link.MessageDrain, WindowSeconds: 60},
		{Type: "of a later version"},
	}
	var wire bytes.Buffer
	w := link.NewWriter(&wire)
	for _, m := range sent {
		if err := w.Write(m); err != nil {
			t.Fatal(err)
		}
	}
	r := link.NewReader(&wire)
	for _, want := range sent {
		got, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		a, _ := json.Marshal(got)
		b, _ := json.Marshal(want)
		if !bytes.Equal(a, b) {
			t.Errorf("got %.200s, want %.200s", a, b)
		}
	}
	if _, err := r.Next(); err != io.EOF {
		t.Error("at the end:", err)
	}
}

func TestWhatIsNoMessageIsRefused(t *testing.T) {
	for name, line := range map[string]string{
		"too long":         `{"type":"heartbeat","sentence":"` + strings.Repeat("x", link.MaxLine) + `"}`,
		"endless":          strings.Repeat("x", 2*link.MaxLine),
		"not JSON":         "hello\n",
		"two in a line":    `{"type":"heartbeat"}{"type":"heartbeat"}` + "\n",
		"cut":              `{"type":"heartbeat"}`,
		"no type":          "{}\n",
		"no declaration":   `{"type":"declaration"}` + "\n",
		"bad digest":       `{"type":"declaration","declaration":{"mesh":"m1","size":1,"digest":"sha256:../x"}}` + "\n",
		"another hash":     `{"type":"declaration","declaration":{"mesh":"m1","size":1,"digest":"sha512:` + strings.Repeat("a", 128) + `"}}` + "\n",
		"huge":             `{"type":"declaration","declaration":{"mesh":"m1","size":1e12,"digest":"` + digestA + `"}}` + "\n",
		"negative":         `{"type":"declaration","declaration":{"mesh":"m1","size":-1,"digest":"` + digestA + `"}}` + "\n",
		"another length":   `{"type":"declaration","declaration":{"mesh":"m1","size":9,"digest":"` + digestA + `","document":"eHg="}}` + "\n",
		"bad address":      `{"type":"addresses","addresses":["x"]}` + "\n",
		"negative window":  `{"type":"drain","window_seconds":-5}` + "\n",
		"window too large": `{"type":"drain","window_seconds":1e300}` + "\n",
	} {
		if m, err := link.NewReader(strings.NewReader(line)).Next(); err == nil || err == io.EOF {
			t.Errorf("%s: read as %+v, %v", name, m, err)
		}
	}
}

func TestWriterDoesNotSendWhatNobodyWouldTake(t *testing.T) {
	var wire bytes.Buffer
	w := link.NewWriter(&wire)
	for _, m := range []link.Message{
		{},
		{Type: link.MessageDeclaration},
		{Type: link.MessageRevoked, Sentence: strings.Repeat("x", link.MaxLine)},
	} {
		if err := w.Write(m); err == nil || wire.Len() != 0 {
			t.Errorf("%.40q was sent", m.Type)
		}
	}
}

func TestDeclarationIsCheckedAgainstItsDigest(t *testing.T) {
	// The SHA-256 of "abc", FIPS 180-4.
	m := link.DeclarationMessage{Size: 3, Digest: "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"}
	if err := m.Check([]byte("abc")); err != nil {
		t.Error(err)
	}
	if m.Check([]byte("abd")) == nil || m.Check([]byte("abcd")) == nil {
		t.Error("another document passed")
	}
}

func FuzzReader(f *testing.F) {
	f.Add([]byte(`{"type":"heartbeat"}` + "\n"))
	f.Add([]byte(`{"type":"declaration","declaration":{"mesh":"m1","size":2,"digest":"` + digestA + `","document":"eHg="}}` + "\n"))
	f.Fuzz(func(t *testing.T, wire []byte) {
		r := link.NewReader(bytes.NewReader(wire))
		for {
			m, err := r.Next()
			if err != nil {
				return
			}
			if m.Type == link.MessageDeclaration && m.Declaration == nil {
				t.Fatal("a declaration without one")
			}
		}
	})
}
