package policy

import (
	"net"
	"net/url"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/sqlhandler"
)

// HTTP is a handler that calls an endpoint.
type HTTP struct {
	// URL is the endpoint's, which may hold a secret in its query: never print it.
	URL string
	// Headers are sent with each request, in the file's order; values may be secret.
	Headers []HTTPHeader
	// Pass names the message's headers that are sent, too.
	Pass []string
	// NoKey: no idempotency key is sent. One of the other two is a reason in the author's
	// words then.
	NoKey                bool
	MayDouble, MayBeLost string
	// Timeout is of one call.
	Timeout time.Duration
	// MaxRetryAfter is the longest wait that an answer may ask for.
	MaxRetryAfter time.Duration
	// Window is for how long the endpoint knows a key, or one of consumer.WindowAlways and
	// consumer.WindowNever.
	Window time.Duration
	// Sign is nil where requests are not signed.
	Sign *Sign
	// TLS is nil where the policy names none.
	TLS *TLS
	// Effects is nil where an answer brings none.
	Effects *HTTPEffects
	// Pure: the endpoint changes nothing, and what it answers is all.
	Pure bool
	// Connections is how many calls are made at once at most; the consumer's workers unless
	// the file says.
	Connections int
}

// HTTPEffects are what an endpoint's answer may have done in the store.
type HTTPEffects struct {
	// Statements are those that it may name, in the file's order.
	Statements []*AnswerStatement
	// Intents are the consumers that it may write intents for.
	Intents []string
}

// AnswerStatement is one of them.
type AnswerStatement struct {
	Name, SQL string
	Params    []AnswerParam
	// Rows and Otherwise are as a Statement's.
	Rows      *int64
	Otherwise string
}

// AnswerParam is a parameter whose value the answer gives.
type AnswerParam sqlhandler.TypedParam

// local reports whether nothing of a call leaves this host.
func (h *HTTP) local() bool {
	u, err := url.Parse(h.URL)
	return err == nil && (u.Hostname() == "localhost" || net.ParseIP(u.Hostname()).IsLoopback())
}

// HTTPHeader is a header of a request.
type HTTPHeader struct{ Name, Value string }

// Sign says how requests are signed.
type Sign struct {
	// Secrets make a signature each.
	Secrets []string
}
