package link

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/opencontainers/go-digest"
)

// The headers of GET /v1/link, by which a node says where it stands. A host of
// before they were sends none, and is taken at its key alone.
const (
	// HeaderSession has the session values that the node kept, newest first,
	// separated by ", ".
	HeaderSession = "Nox-Session"
	// HeaderHave has the Position of the declaration in force.
	HeaderHave = "Nox-Have"
)

// MaxKept is how many session values a node keeps and says: that of its last
// session, and the one before, which is the newest that the control plane knows of
// when it never heard that the last one is kept.
const MaxKept = 2

// An Opening is what a node says when it opens its link. Both are claims.
type Opening struct {
	// Sessions are the session values it kept, newest first.
	Sessions []SessionValue
	// Have is what it has in force of this mesh; nil when it has nothing.
	Have *Position
}

// A Position is a place in the order of one mesh's declarations, and which
// declaration stands there.
type Position struct {
	Epoch      uint64 `json:"epoch"`
	Generation uint64 `json:"generation"`
	Digest     string `json:"digest"`
}

// A SessionValue is given to a node once, at the start of a session, and said by it
// at the start of the next: two machines with one key cannot both have the newest.
// It is no secret. Its form is a count, "-" and 16 hex digits; the count grows along
// the sessions of one node.
type SessionValue string

var sessionForm = regexp.MustCompile(`^[1-9][0-9]{0,15}-[0-9a-f]{16}$`)

// MaxCount is the highest count that a value is followed from: no node has so many
// sessions, and the next one has room for its digits.
const MaxCount = 1e15

// NewSessionValue makes a value that follows those with a lower count.
func NewSessionValue(count uint64) SessionValue {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails (Go 1.24)
	return SessionValue(fmt.Sprintf("%d-%s", count, hex.EncodeToString(b[:])))
}

// Valid says whether v has the form of a value.
func (v SessionValue) Valid() bool { return sessionForm.MatchString(string(v)) }

// Count is the count in it, 0 of none.
func (v SessionValue) Count() uint64 {
	count, _, _ := strings.Cut(string(v), "-")
	n, _ := strconv.ParseUint(count, 10, 64)
	return n
}

// Set writes the opening as headers.
func (o Opening) Set(h http.Header) {
	if len(o.Sessions) > 0 {
		var s []string
		for _, v := range o.Sessions {
			s = append(s, string(v))
		}
		h.Set(HeaderSession, strings.Join(s, ", "))
	}
	if p := o.Have; p != nil {
		h.Set(HeaderHave, fmt.Sprintf("%d %d %s", p.Epoch, p.Generation, p.Digest))
	}
}

// ParseOpening reads what Set wrote. The error is a refusal.
func ParseOpening(h http.Header) (Opening, error) {
	var o Opening
	if s := h.Get(HeaderSession); s != "" {
		for v := range strings.SplitSeq(s, ", ") {
			if !SessionValue(v).Valid() || len(o.Sessions) == MaxKept {
				return o, Refused.Errorf("cannot open the link: the header %s is not as it should be", HeaderSession)
			}
			o.Sessions = append(o.Sessions, SessionValue(v))
		}
	}
	have := h.Get(HeaderHave)
	if have == "" {
		return o, nil
	}
	var p Position
	n, err := fmt.Sscanf(have, "%d %d %s", &p.Epoch, &p.Generation, &p.Digest)
	if n != 3 || err != nil || digest.Digest(p.Digest).Validate() != nil || have != fmt.Sprintf("%d %d %s", p.Epoch, p.Generation, p.Digest) {
		return o, Refused.Errorf("cannot open the link: the header %s is not as it should be", HeaderHave)
	}
	o.Have = &p
	return o, nil
}
