package bundle

import (
	"bytes"
	"crypto"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/nox-mesh/nox-mesh/bundle/internal/canonical"
	"github.com/nox-mesh/nox-mesh/bundle/trust"
	"github.com/nox-mesh/nox-mesh/internal/fault"
)

// A mutant is a bundle that a script of the fuzzer changes member by member, and
// not byte by byte: a change of one byte in a manifest ends at its digest, and what
// is behind the digests would never be reached.
type mutant struct {
	t       testing.TB
	members []member
	signers []crypto.Signer // those there are
}

// The steps of a script are five bytes each: what, which member, where (two
// bytes), and a value.
const stepSize = 5

// run takes the steps, and stops at the eighth: what a mutant is refused for
// should not be lost in a crowd.
func (m *mutant) run(script []byte) {
	for n := 0; len(script) >= stepSize && n < 8 && len(m.members) > 0; n++ {
		m.step(script[0], int(script[1])%len(m.members), int(script[2])<<8|int(script[3]), script[4])
		script = script[stepSize:]
	}
}

func (m *mutant) step(what byte, i, at int, value byte) {
	one := &m.members[i]
	body := bytes.Clone(one.body)
	where := 0
	if len(body) > 0 {
		where = at % len(body)
	}
	switch what % 12 {
	case 0:
		m.members = slices.Delete(m.members, i, i+1)
	case 1:
		m.members = slices.Insert(m.members, at%len(m.members), *one)
	case 2:
		j := at % len(m.members)
		m.members[i], m.members[j] = m.members[j], m.members[i]
	case 3: // the header, its checksum made right
		one.head[at%blockSize] = value
		copy(one.head[offChecksum:], "        ")
		sum := 0
		for _, c := range one.head {
			sum += int(c)
		}
		copy(one.head[offChecksum:], must[string](m.t)(octal(sum)))
	case 4: // the header as it is
		one.head[at%blockSize] ^= value
	case 5: // the content, under its old name
		if len(body) > 0 {
			body[where] ^= value
			one.body = body
		}
	case 6: // the content of another
		one.body = m.members[at%len(m.members)].body
		one.head = header(one.name(), int64(len(one.body)))
	case 7: // shorter or longer
		if value&1 == 0 {
			one.body = body[:where]
		} else {
			one.body = append(body, bytes.Repeat([]byte{value}, at%2000)...)
		}
		one.head = header(one.name(), int64(len(one.body)))
	case 8: // a byte of the content, and every digest above it made right
		if len(body) > 0 {
			body[where] ^= value
			m.replace(i, body)
		}
	case 9: // a piece of the content twice, and every digest made right
		end := min(len(body), where+int(value))
		m.replace(i, slices.Concat(body[:end], body[where:end], body[end:]))
	case 10: // a piece of the content gone, and every digest made right
		m.replace(i, slices.Concat(body[:where], body[min(len(body), where+int(value)):]))
	case 11: // one word for another of the same bundle, and every digest made right
		words := word.FindAll(body, -1)
		if len(words) > 0 {
			a, b := words[at%len(words)], words[int(value)%len(words)]
			m.replace(i, bytes.Replace(body, a, b, 1))
		}
	}
}

// word is a string or a number of JSON.
var word = regexp.MustCompile(`"[^"]*"|[0-9]+`)

// replace gives a blob other content, and makes right what mentions it: the
// digests and sizes above it, up to D, and the signatures, which the fuzzer's own
// keys make anew.
func (m *mutant) replace(i int, body []byte) {
	if !strings.HasPrefix(m.members[i].name(), blobPrefix) {
		m.members[i] = made(m.members[i].name(), body)
		return
	}
	for range 8 {
		old := strings.TrimPrefix(m.members[i].name(), blobPrefix)
		sum := sha256.Sum256(body)
		now := hex.EncodeToString(sum[:])
		m.members[i] = made(blobPrefix+now, body)
		if old == now {
			return
		}
		if !canonical.Hex(old) {
			return // it was renamed
		}
		mention := regexp.MustCompile(`"digest":"sha256:` + regexp.QuoteMeta(old) + `"([^{}]*)"size":[0-9]+`)
		above, size := -1, strconv.Itoa(len(body))
		for j := range m.members {
			text := mention.ReplaceAll(m.members[j].body, []byte(`"digest":"sha256:`+now+`"${1}"size":`+size))
			switch {
			case bytes.Equal(text, m.members[j].body):
			case m.members[j].name() == indexName:
				m.members[j] = made(indexName, text)
			case bytes.Contains(text, []byte(trust.PredicateType)):
				m.resign(j, text)
			default:
				above, body = j, text
			}
		}
		if above < 0 {
			m.order()
			return
		}
		i = above
	}
}

// order puts signatures in the order of their new digests, in index.json too.
func (m *mutant) order() {
	index := slices.IndexFunc(m.members, func(one member) bool { return one.name() == indexName })
	if index < 0 {
		return
	}
	var x v1.Index
	if canonical.Unmarshal(m.members[index].body, &x) != nil {
		return
	}
	var entries []int
	for i, e := range x.Manifests {
		if e.ArtifactType == trust.MediaType {
			entries = append(entries, i)
		}
	}
	at := func(e v1.Descriptor) int {
		return slices.IndexFunc(m.members, func(one member) bool { return one.name() == blobPrefix+strings.TrimPrefix(string(e.Digest), "sha256:") })
	}
	for i := range entries {
		for j := range i {
			a, b := &x.Manifests[entries[j]], &x.Manifests[entries[i]]
			p, q := at(*a), at(*b)
			if a.Digest <= b.Digest || p < 0 || q < 0 || p+1 >= len(m.members) || q+1 >= len(m.members) {
				continue
			}
			*a, *b = *b, *a
			m.members[p], m.members[q] = m.members[q], m.members[p]
			m.members[p+1], m.members[q+1] = m.members[q+1], m.members[p+1]
		}
	}
	m.members[index] = made(indexName, must[[]byte](m.t)(canonical.Marshal(x)))
}

// resign makes a new signature for the D that the signature manifest in member j,
// now text, is about; the signature is the member after it.
func (m *mutant) resign(j int, text []byte) {
	sub := regexp.MustCompile(`"subject":\{"digest":"sha256:([0-9a-f]{64})","mediaType":"([^"]*)","size":([0-9]+)\}`).FindSubmatch(text)
	if sub == nil || j+1 >= len(m.members) {
		return
	}
	length := must[int](m.t)(strconv.Atoi(string(sub[3])))
	subject := v1.Descriptor{
		MediaType: v1.MediaTypeImageIndex, Size: int64(length), Digest: digest.NewDigestFromEncoded(digest.SHA256, string(sub[1])),
	}
	signer := m.signers[0]
	for _, k := range m.signers { // who signed it before
		id := must[[]byte](m.t)(hex.DecodeString(must[string](m.t)(trust.KeyID(k.Public()))))
		if bytes.Contains(m.members[j+1].body, []byte(base64.StdEncoding.EncodeToString(id))) {
			signer = k
		}
	}
	pair := must[[]signature](m.t)(sign(subject, []crypto.Signer{signer}))[0]
	old, size := strings.TrimPrefix(m.members[j].name(), blobPrefix), len(m.members[j].body)
	m.members[j], m.members[j+1] = madeBlob(pair.manifest), madeBlob(pair.bundle)
	for k := range m.members {
		if m.members[k].name() != indexName {
			continue
		}
		body := string(m.members[k].body)
		body = strings.Replace(body, `"sha256:`+old+`"`, `"sha256:`+strings.TrimPrefix(m.members[j].name(), blobPrefix)+`"`, 1)
		body = strings.Replace(body, `"size":`+strconv.Itoa(size)+`}`, `"size":`+strconv.Itoa(len(pair.manifest))+`}`, 1)
		m.members[k] = made(indexName, []byte(body))
	}
}

// TestAMutantComesBehindTheDigests: a fuzzer whose every input ends at the first
// digest shows nothing.
func TestAMutantComesBehindTheDigests(t *testing.T) {
	l := newLot(t)
	for which, b := range l.bundles {
		accepted, signed := 0, 0
		for i := range split(t, b) {
			m := &mutant{t: t, members: split(t, b), signers: l.keys}
			m.run([]byte{8, byte(i), 0, 1, 1})
			err := l.legal(t, join(m.members...))
			switch {
			case err == nil:
				accepted++
			case strings.Contains(fault.RemedyOf(err), "signed like this"):
				signed++
			}
		}
		if accepted == 0 || signed == 0 {
			t.Errorf("bundle %d: %d accepted with other content, %d refused for what was signed", which, accepted, signed)
		}
	}
}
