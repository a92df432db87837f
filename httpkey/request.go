package httpkey

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/digest"
)

// request is a request with a key.
type request struct {
	http        *http.Request
	caller, key string
	fingerprint semel.Fingerprint
	body        []byte
	// The encoded request, for a Completer. The field is nil without Completion, and for the requests of a Completer.
	note      []byte
	finishing bool
	// The number of claims of the key at the time when a Completer found the abandoned request.
	claims int
	// The number of bytes of Config.MostBytes that the request uses.
	reserved int64
}

// reserveBytes reserves the bytes of the body in Config.MostBytes, before the body is read.
func (q *request) reserveBytes(of *shares, most int64) *problem {
	n := q.http.ContentLength
	if q.http.Body == nil || n == 0 {
		return nil
	}
	if n < 0 || n > most {
		n = most
	}
	if why := of.take(q.http.Context(), q.caller, n); why != enough {
		return why.problem()
	}
	q.reserved = n
	return nil
}

// release releases the bytes that reserveBytes has reserved.
func (q *request) release(of *shares) {
	if q.reserved > 0 {
		of.free(q.caller, q.reserved)
		q.reserved = 0
	}
}

// releaseUnused releases the reserved bytes that the body did not need.
func (q *request) releaseUnused(of *shares) {
	if rest := q.reserved - int64(len(q.body)); rest > 0 {
		of.free(q.caller, rest)
		q.reserved -= rest
	}
}

// id returns the key together with its caller. The result is unique, because a key has no zero byte.
func (q *request) id() string { return q.caller + "\x00" + q.key }

// mostCaller is the maximum length of a caller in bytes.
const mostCaller = 1024

// read returns the request. If the problem is not nil, the request must be rejected. If both results are nil, the
// request has no key and may reach the handler unprotected.
func (g *Guard) read(w http.ResponseWriter, r *http.Request) (*request, *problem) {
	c := &g.config
	key, err := c.keyOf(r.Header)
	switch {
	case err != nil:
		return nil, newProblem(http.StatusBadRequest, codeInvalid, err.Error(), 0)
	case key == "" && c.Optional:
		return nil, nil
	case key == "":
		return nil, newProblem(http.StatusBadRequest, codeMissing, fmt.Sprintf("send the header %s with a new key for each new request, and the same key when a request is repeated", Header), 0)
	}
	q := &request{http: r, key: key}
	if c.Caller != nil {
		if q.caller = c.Caller(r); q.caller == "" || len(q.caller) > mostCaller {
			return nil, newProblem(http.StatusUnauthorized, codeCaller, "keys belong to callers, and the caller is unknown", 0)
		}
	}
	if p := q.reserveBytes(g.bodies, c.MaxBody); p != nil {
		return nil, p
	}
	if p := q.readBody(w, c.MaxBody); p != nil {
		return q, p
	}
	q.releaseUnused(g.bodies)
	q.fingerprint = fingerprint(r, q.body)
	return q, nil
}

// readBody reads the whole body before the handler runs, so a request whose body ends early has no effect.
func (q *request) readBody(w http.ResponseWriter, most int64) *problem {
	if q.http.Body == nil {
		return nil
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, q.http.Body, most))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return newProblem(http.StatusRequestEntityTooLarge, codeTooLarge, fmt.Sprintf("the body has more than %d bytes; nothing was done", most), 0)
	case err != nil:
		return newProblem(http.StatusBadRequest, codeBody, "the body ended early, or could not be read; nothing was done", 0)
	}
	q.body = body
	return nil
}

// The version of the rule by which fingerprint computes a hash. Version 1 did not include headers. Stores do not
// compare fingerprints of two versions, so a key with a fingerprint of version 1 matches every request of its caller.
const fingerprints = 2

// The headers that determine how a body is read. If the values of these headers differ, the requests differ, even if
// the bytes of the bodies are equal.
var fingerprinted = []string{"Content-Encoding", contentType}

// fingerprint returns a hash of a request's method, path, query, body, and the headers in fingerprinted. The hash
// contains the path and not the route, because the same body for another order is another request. The hash does not
// contain the host, because proxies change the host, and clients may repeat a request at another address of the same
// API. The hash does not contain the caller, because each caller has its own keys.
func fingerprint(r *http.Request, body []byte) semel.Fingerprint {
	h := sha256.New()
	digest.Begin(h, "http-request/2")
	for _, part := range []string{r.Method, r.URL.EscapedPath(), r.URL.RawQuery} {
		digest.Part(h, []byte(part))
	}
	for _, name := range fingerprinted {
		digest.Part(h, []byte(strings.Join(r.Header.Values(name), ",")))
	}
	digest.Part(h, body)
	f := semel.Fingerprint{Version: fingerprints}
	copy(f.Sum[:], h.Sum(nil))
	return f
}

// restoreBody returns the request for the handler, with a new reader for the body.
func (q *request) restoreBody(r *http.Request) *http.Request {
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(q.body)), int64(len(q.body))
	return r
}
