package httpkey

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"
)

// problem is a problem document (RFC 9457). A problem is the answer to a request that no handler answers.
type problem struct {
	status int
	code   string
	title  string
	detail string
	// If not empty, the field allow lists the methods that are allowed.
	allow string
	// If not 0, the field after is the value of the header Retry-After.
	after time.Duration
}

// The codes never change, because clients distinguish problems by their codes.
const (
	codeMissing     = "idempotency-key-missing"
	codeInvalid     = "idempotency-key-invalid"
	codeCaller      = "caller-unknown"
	codeMethod      = "method-not-protected"
	codeBody        = "request-body-unreadable"
	codeTooLarge    = "request-body-too-large"
	codeMismatch    = "idempotency-key-reused"
	codeInFlight    = "request-in-progress"
	codeUnavailable = "store-unavailable"
	codeBusy        = "too-many-requests-open"
	codeBusyCaller  = "too-many-requests-of-caller"
	codeUnsure      = "outcome-unknown"
	codeNotRecorded = "answer-not-recorded"
	codeGone        = "answer-gone"
	codeNewer       = "answer-of-newer-release"
	codePanic       = "handler-failed"
	codeTimeout     = "handler-timed-out"
	codeAnswer      = "answer-too-large"
	codeCommit      = "not-committed"
)

// titles contains the title of each code.
var titles = map[string]string{
	codeMissing:     "The request has no idempotency key",
	codeInvalid:     "The idempotency key cannot be read",
	codeCaller:      "The caller is not known",
	codeMethod:      "Requests of this method are not answered",
	codeBody:        "The request's body cannot be read",
	codeTooLarge:    "The request's body is too large",
	codeMismatch:    "The idempotency key was used for another request",
	codeInFlight:    "A request with this idempotency key is in progress",
	codeUnavailable: "Idempotency keys cannot be looked up now",
	codeBusy:        "Too many requests are open now",
	codeBusyCaller:  "Too many requests of this caller are open now",
	codeUnsure:      "The outcome of this request is unknown",
	codeNotRecorded: "The answer could not be recorded",
	codeGone:        "The answer to this request is no longer kept",
	codeNewer:       "The answer to this request cannot be read by this server",
	codePanic:       "The request failed",
	codeTimeout:     "The request took too long",
	codeAnswer:      "The answer is too large",
	codeCommit:      "The request was not carried out",
}

// The value of Retry-After for requests that the client may repeat soon.
const retryAfter = time.Second

func newProblem(status int, code, detail string, after time.Duration) *problem {
	return &problem{status: status, code: code, title: titles[code], detail: detail, after: after}
}

// problem returns the answer to a request that was rejected because too many handlers run or too many bytes are in use.
func (l shortage) problem() *problem {
	const detail = "nothing was done; repeat the request with the same key"
	if l == lackCaller {
		return newProblem(http.StatusTooManyRequests, codeBusyCaller, detail, retryAfter)
	}
	return newProblem(http.StatusServiceUnavailable, codeBusy, detail, retryAfter)
}

// answer returns the problem as an answer.
func (p *problem) answer(base string) *answer {
	kind := "about:blank"
	if base != "" {
		kind = base + p.code
	}
	body, _ := json.Marshal(struct {
		Type   string `json:"type"`
		Title  string `json:"title"`
		Status int    `json:"status"`
		Detail string `json:"detail,omitempty"`
		Code   string `json:"code"`
	}{kind, p.title, p.status, p.detail, p.code}) // strings and a number
	header := http.Header{"Content-Type": {"application/problem+json"}, "Cache-Control": {"no-store"}}
	if p.allow != "" {
		header.Set("Allow", p.allow)
	}
	if p.after > 0 {
		header.Set("Retry-After", strconv.FormatInt(int64((p.after+time.Second-1)/time.Second), 10))
	}
	return &answer{p.status, header, append(body, '\n')}
}
