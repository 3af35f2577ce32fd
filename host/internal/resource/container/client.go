package container

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode"

	"golang.org/x/sys/unix"
)

// The bounds of what a runtime answers, in bytes: a list of thousands of
// containers fits, a runtime gone mad does not.
const (
	maxAnswer = 16 << 20
	maxLine   = 1 << 20
	maxReason = 1 << 10
)

// askTime bounds a question that changes nothing.
const askTime = 30 * time.Second

// A client speaks to one runtime over its socket, one connection a call: nothing
// is kept open between passes, and nothing goes on in the background.
type client struct {
	socket string
	// version is the path's first part: "/v1.41".
	version string
	// podman: the runtime is that.
	podman bool
	// near: its processes have the same numbers for us.
	near bool
}

// An unreachable is the error of a runtime that does not answer.
type unreachable struct {
	socket string
	err    error
}

func (e *unreachable) Error() string {
	return fmt.Sprintf("the container runtime does not answer at %q: %v", e.socket, e.err)
}
func (e *unreachable) Unwrap() error { return e.err }

// A refusal is what the runtime answers when it does not do it.
type refusal struct {
	status int
	reason string
}

func (e *refusal) Error() string { return e.reason }

func isStatus(err error, statuses ...int) bool {
	var r *refusal
	if !errors.As(err, &r) {
		return false
	}
	for _, s := range statuses {
		if r.status == s {
			return true
		}
	}
	return false
}

// request is one call.
type request struct {
	method string
	path   string
	query  url.Values
	// body is what is sent, of the type; nil is nothing.
	body io.Reader
	size int64
	typ  string
	// plain: the path is not of a version.
	plain bool
	// header, if set, gets the answer's.
	header *http.Header
	// near, if set, gets whether the runtime is among the processes we see.
	near *bool
}

// call makes the call and hands the answer, when it is a good one, to read. The
// whole takes place in this goroutine and ends with ctx.
func (c client) call(ctx context.Context, r request, read func(io.Reader) error) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", c.socket)
	if err != nil {
		return &unreachable{c.socket, why(ctx, err)}
	}
	defer conn.Close()
	past := time.Unix(1, 0)
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(past) })()

	u := url.URL{Scheme: "http", Host: "localhost", Path: r.path, RawQuery: r.query.Encode()}
	if !r.plain {
		u.Path = c.version + r.path
	}
	req, err := http.NewRequestWithContext(ctx, r.method, u.String(), nil)
	if err != nil {
		return err
	}
	req.Close = true
	body := &source{Reader: r.body}
	if r.body != nil {
		req.Header.Set("Content-Type", r.typ)
		req.Body, req.ContentLength = io.NopCloser(body), r.size
		if r.size < 0 {
			req.TransferEncoding = []string{"chunked"}
		}
	}
	// One that refuses early answers before it has read all: its reason counts.
	sent := req.Write(conn)
	if body.err != nil {
		return body.err // and nobody will answer to half of it
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), req)
	if err != nil {
		return &unreachable{c.socket, why(ctx, errors.Join(sent, err))}
	}
	defer answer.Body.Close()
	if answer.StatusCode >= 400 {
		return &refusal{answer.StatusCode, reason(answer)}
	}
	if sent != nil {
		return &unreachable{c.socket, why(ctx, sent)}
	}
	if r.near != nil {
		*r.near = visible(conn)
	}
	if r.header != nil {
		*r.header = answer.Header
	}
	if read == nil {
		return nil
	}
	if err := read(answer.Body); err != nil {
		switch {
		case ctx.Err() != nil:
			return &unreachable{c.socket, ctx.Err()}
		case isRefusal(err):
			return err
		}
		return fmt.Errorf("the container runtime's answer to %s %s: %w", r.method, r.path, err)
	}
	return nil
}

// A source remembers why it could not be read to its end.
type source struct {
	io.Reader
	err error
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if err != nil && err != io.EOF {
		s.err = err
	}
	return n, err
}

// visible reports whether who listens at the other end lives in our PID
// namespace (unix(7), SO_PEERCRED; pid_namespaces(7)): of a runtime in another
// one the numbers mean nothing here.
func visible(conn net.Conn) (seen bool) {
	c, ok := conn.(*net.UnixConn)
	if !ok {
		return false
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return false
	}
	_ = raw.Control(func(fd uintptr) {
		peer, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
		if err != nil || peer.Pid <= 0 {
			return
		}
		theirs, err1 := os.Readlink("/proc/" + strconv.Itoa(int(peer.Pid)) + "/ns/pid")
		ours, err2 := os.Readlink("/proc/self/ns/pid")
		seen = err1 == nil && err2 == nil && theirs == ours
	})
	return seen
}

// why prefers the reason that our own end had.
func why(ctx context.Context, err error) error {
	if _, limited := ctx.Deadline(); limited && (errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded)) {
		// A dial keeps the deadline by a clock of its own, and may be a moment
		// earlier.
		<-ctx.Done()
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// reason is what a refusal says, in one line.
func reason(answer *http.Response) string {
	b, _ := io.ReadAll(io.LimitReader(answer.Body, 64<<10))
	var said struct{ Message string }
	text := string(b)
	if json.Unmarshal(b, &said) == nil && said.Message != "" {
		text = said.Message
	}
	if text = line(text); text == "" {
		text = answer.Status
	}
	return text
}

// line makes one bounded line of what a stranger says.
func line(text string) string {
	text = strings.ToValidUTF8(text, "?")
	text = strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)), " ")
	if len(text) > maxReason {
		text = strings.ToValidUTF8(text[:maxReason], "") + "…"
	}
	return text
}

// get asks, and decodes the answer into to. It is false when there is no such
// thing.
func (c client) get(ctx context.Context, path string, query url.Values, to any) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	err := c.call(ctx, request{method: http.MethodGet, path: path, query: query}, func(r io.Reader) error { return decode(r, to) })
	if isStatus(err, http.StatusNotFound) {
		return false, nil
	}
	return err == nil, err
}

// post tells, with in as the body if any, and decodes the answer into out.
func (c client) post(ctx context.Context, path string, query url.Values, in, out any) error {
	r := request{method: http.MethodPost, path: path, query: query}
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return err
		}
		r.body, r.size, r.typ = bytes.NewReader(b), int64(len(b)), "application/json"
	}
	if out == nil {
		return c.call(ctx, r, nil)
	}
	return c.call(ctx, r, func(r io.Reader) error { return decode(r, out) })
}

func (c client) delete(ctx context.Context, path string, query url.Values) error {
	err := c.call(ctx, request{method: http.MethodDelete, path: path, query: query}, nil)
	if isStatus(err, http.StatusNotFound) {
		return nil
	}
	return err
}

// decode reads one bounded JSON document. What it says beyond what is asked for
// is each runtime's own; what is asked for must have the right type.
func decode(r io.Reader, to any) error {
	b, err := io.ReadAll(io.LimitReader(r, maxAnswer+1))
	switch {
	case err != nil:
		return err
	case len(b) > maxAnswer:
		return fmt.Errorf("is longer than %d bytes", maxAnswer)
	}
	return json.Unmarshal(b, to)
}

// progress reads what a long work says about itself, a JSON document a line, to
// its end. The runtime answers 200 before it knows whether it will work.
func progress(r io.Reader) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		var said struct {
			Error       string `json:"error"`
			ErrorDetail struct {
				Message string `json:"message"`
			} `json:"errorDetail"`
		}
		if err := json.Unmarshal(lines.Bytes(), &said); err != nil {
			return err
		}
		if said.Error != "" || said.ErrorDetail.Message != "" {
			if said.ErrorDetail.Message != "" {
				said.Error = said.ErrorDetail.Message
			}
			return &refusal{http.StatusInternalServerError, line(said.Error)}
		}
	}
	return lines.Err()
}

// isRefusal reports whether the runtime is there and does not do it.
func isRefusal(err error) bool { return errors.As(err, new(*refusal)) }
