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
	// mostRead is how much of an answer's body is read, so that its connection can be
	// used again; the connection of a longer one is closed.
	mostRead = 1 << 20
	// mostProblem is how long a description of a problem may be that is looked into.
	mostProblem = 64 << 10
	// mostTitle is how much of a problem's title is told.
	mostTitle = 256
)

// answer is what is known of one that has come.
type answer struct {
	status int
	header http.Header
	// title is of a problem (RFC 9457), or empty.
	title string
	// effects: it says that its body is of effects, of which the first
	// mostRead bytes are kept.
	effects bool
	body    []byte
	// length is how much of the body was read.
	length int64
}

func (a *answer) done() bool { return a.status >= 200 && a.status < 300 }

// read takes the answer to its end, or over its first MiB. An error says that it ended
// before its end.
func read(response *http.Response) (answer, error) {
	a := answer{status: response.StatusCode, header: response.Header}
	var kept bytes.Buffer
	into := io.Discard
	kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	problem := kind == "application/problem+json" && a.status >= 400
	switch a.effects = kind == EffectsType && a.done(); {
	case a.effects:
		into = &kept
	case problem:
		into = &first{&kept}
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
		a.body = append([]byte{}, kept.Bytes()...) // not nil, so that it is told from none
	}
	return a, nil
}

// first keeps what fits into mostProblem, and one byte more.
type first struct{ *bytes.Buffer }

func (f *first) Write(p []byte) (int, error) {
	_, _ = f.Buffer.Write(p[:min(len(p), mostProblem+1-f.Len())])
	return len(p), nil
}

// title is that of a problem, which says the same of every occurrence (RFC 9457,
// section 3.1.3); its detail does not, and may quote the message.
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

// judge says what an answer means for its message.
func (h *Handler) judge(a answer, now time.Time) error {
	if a.done() {
		return nil
	}
	err := &answerError{host: h.host, status: a.status, title: a.title}
	after := min(retryAfter(a.header, now), h.config.MaxRetryAfter)
	switch {
	case h.config.MayBeLost && refuses(a.status):
		return semel.RetryAfter(err, after)
	case leavesOpen(a.status):
		return &semel.HandlerError{Decision: semel.DecideUnknown, After: after, Err: err}
	case again(a.status):
		return semel.RetryAfter(err, after)
	}
	return semel.Permanent(err)
}

// refuses reports whether an answer means by its definition that the call was not carried
// out. It counts for calls that would be lost otherwise: under a key, which makes another
// call harmless, servers are not trusted to keep to that.
func refuses(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusConflict,
		http.StatusNotImplemented, http.StatusServiceUnavailable, http.StatusHTTPVersionNotSupported, http.StatusNetworkAuthenticationRequired:
		return true
	}
	return false
}

// again reports whether the same request may be answered otherwise later, and was not
// carried out.
func again(status int) bool {
	return status == http.StatusTooEarly || status == http.StatusTooManyRequests
}

// leavesOpen reports whether an answer leaves open whether the call was carried out: a
// server that failed may have done so before or after the effect, a gateway heard no
// answer itself, and with 409 the call before, under the same key, may still be under way.
func leavesOpen(status int) bool {
	return status >= 500 || status == http.StatusRequestTimeout || status == http.StatusConflict
}

// answerError is an answer that says no.
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
		text += "; redirects are not followed: call the endpoint where it is"
	}
	return text
}

// retryAfter is the wait that an answer asks for, 0 if none (RFC 9110, section 10.2.3).
// A date is held against the answer's own date, since its server's clock wrote both.
func retryAfter(header http.Header, now time.Time) time.Duration {
	text := header.Get("Retry-After")
	if seconds, ok := digits(text); ok {
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

// digits reads seconds. More than a year is a year.
func digits(text string) (time.Duration, bool) {
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
