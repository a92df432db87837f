package httphandler

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/legible"
)

const (
	// mostRead is the maximum number of bytes that are read from a response so that the connection can be
	// reused. If a response is longer than mostRead, the connection is closed.
	mostRead = 1 << 20
	// mostProblem is the maximum length of a problem document that is parsed.
	mostProblem = 64 << 10
	// mostTitle is the maximum length of a problem's title in errors.
	mostTitle = 256
)

// answer is the response of an endpoint.
type answer struct {
	status int
	header http.Header
	// title is the title of a problem document (RFC 9457); empty if the response has none.
	title string
	// effects means that the response has the media type of effects. If effects is set, the field body has the
	// first mostRead bytes.
	effects bool
	body    []byte
	// length is the number of bytes that were read from the body.
	length int64
}

func (a *answer) succeeded() bool { return a.status >= 200 && a.status < 300 }

// read reads a response to the end, or up to mostRead bytes. read returns an error if the response is
// incomplete.
func read(response *http.Response) (answer, error) {
	a := answer{status: response.StatusCode, header: response.Header}
	var kept bytes.Buffer
	into := io.Discard
	kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	problem := kind == "application/problem+json" && a.status >= 400
	switch a.effects = kind == EffectsType && a.succeeded(); {
	case a.effects:
		into = &kept
	case problem:
		into = &prefixWriter{&kept}
	}
	var err error
	if a.length, err = io.Copy(into, io.LimitReader(response.Body, mostRead)); err != nil {
		return a, err
	}
	more, err := io.ReadFull(response.Body, make([]byte, 1))
	if err != nil && err != io.EOF {
		return a, err
	}
	a.length += int64(more)
	switch {
	case problem:
		a.title = title(kept.Bytes())
	case a.effects:
		a.body = append([]byte{}, kept.Bytes()...) // not nil, because nil means a response without a body
	}
	return a, nil
}

// prefixWriter is a writer that stores the first mostProblem bytes of a response and one more byte. If
// prefixWriter has stored mostProblem bytes and one more byte, the response is too long.
type prefixWriter struct{ *bytes.Buffer }

func (f *prefixWriter) Write(p []byte) (int, error) {
	_, _ = f.Buffer.Write(p[:min(len(p), mostProblem+1-f.Len())])
	return len(p), nil
}

// title returns the title of a problem document. The title is the same for every occurrence of the problem
// (RFC 9457, section 3.1.3). The document's detail is not used, because the detail differs and can quote the
// message.
func title(problem []byte) string {
	var p struct {
		Title string `json:"title"`
	}
	if len(problem) > mostProblem || json.Unmarshal(problem, &p) != nil {
		return ""
	}
	if len(p.Title) > mostTitle {
		p.Title = strings.ToValidUTF8(p.Title[:mostTitle], "") + "…"
	}
	return legible.Printable(p.Title)
}

// classifyAnswer returns the result of a message after a response.
func (h *Handler) classifyAnswer(a answer, now time.Time) error {
	if a.succeeded() {
		return nil
	}
	err := &answerError{host: h.host, status: a.status, title: a.title}
	after := min(retryAfter(a.header, now), h.config.MaxRetryAfter)
	switch {
	case h.config.MayBeLost && isRefusal(a.status):
		return semel.RetryAfter(err, after)
	case leavesOpen(a.status):
		return &semel.HandlerError{Decision: semel.DecideUnknown, After: after, Err: err}
	case isRetryable(a.status):
		return semel.RetryAfter(err, after)
	}
	return semel.Permanent(err)
}

// isRefusal reports whether the status guarantees that the server did not carry out the call. If
// the policy prefers a lost call to a double call, Semel calls this function before it repeats a call without
// an idempotency key. A call with an idempotency key is simply repeated, which is harmless.
func isRefusal(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusConflict,
		http.StatusNotImplemented, http.StatusServiceUnavailable, http.StatusHTTPVersionNotSupported, http.StatusNetworkAuthenticationRequired:
		return true
	}
	return false
}

// isRetryable reports whether the status means that the request was not carried out and can succeed
// later.
func isRetryable(status int) bool {
	return status == http.StatusTooEarly || status == http.StatusTooManyRequests
}

// leavesOpen reports whether the outcome of a call is unknown after the given status. A server can fail
// before or after the effect. A gateway may have received no response. After 409, the previous call with the
// same key may still be running.
func leavesOpen(status int) bool {
	return status >= 500 || status == http.StatusRequestTimeout || status == http.StatusConflict
}

// answerError is a response with a status other than 2xx.
type answerError struct {
	host   string
	status int
	title  string
}

func (e *answerError) Error() string {
	text := fmt.Sprintf("%s answered %d", e.host, e.status)
	if known := http.StatusText(e.status); known != "" {
		text += " " + known
	}
	if e.title != "" {
		text += ": " + e.title
	}
	if e.status >= 300 && e.status < 400 {
		text += "; redirects are not followed: set the URL to the final address"
	}
	return text
}

// retryAfter returns the wait that a response requests, or 0 (RFC 9110, section 10.2.3). If the header has a
// date, the wait is the time from the date of the response, because the server's clock wrote both dates.
func retryAfter(header http.Header, now time.Time) time.Duration {
	text := header.Get("Retry-After")
	if seconds, ok := parseSeconds(text); ok {
		return seconds
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	if there, err := http.ParseTime(header.Get("Date")); err == nil {
		now = there
	}
	return max(at.Sub(now), 0)
}

// parseSeconds parses a number of seconds. A wait of more than a year is shortened to a year.
func parseSeconds(text string) (time.Duration, bool) {
	const most = 365 * 24 * time.Hour
	var wait time.Duration
	for _, c := range []byte(text) {
		if c < '0' || c > '9' {
			return 0, false
		}
		wait = min(wait*10+time.Duration(c-'0')*time.Second, most)
	}
	return wait, text != ""
}
