package httphandler

import (
	"slices"
	"strings"

	"github.com/semel-go/semel/cmd/semel/internal/headername"
)

// ours are headers that every request gets, or that belong to its connection. Who could
// set them could cut one request into two, or be somebody else.
var ours = []string{
	"connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade", "expect",
	"host", "content-length", "content-type", "content-encoding", "accept-encoding", "user-agent", "forwarded", "via",
	strings.ToLower(headerKey), "x-idempotency-key", "traceparent", "tracestate",
}

// oursBegin is what further ones begin with.
var oursBegin = []string{"ce-", "semel-", "webhook-", "proxy-", "x-forwarded-"}

// credentials are headers that say who asks: the policy may, a message may not.
var credentials = []string{"authorization", "cookie", "x-api-key"}

// Allowed says why the policy may not set a header of this name; empty if it may.
func Allowed(name string) string {
	lower := strings.ToLower(name)
	switch {
	case !headername.Valid(name):
		return "this is no name of a header"
	case slices.Contains(ours, lower) || slices.ContainsFunc(oursBegin, func(p string) bool { return strings.HasPrefix(lower, p) }):
		return "this header is set by Semel, or belongs to the connection"
	}
	return ""
}

// Passable says why a header of this name may not be taken from a message; empty if it
// may.
func Passable(name string) string {
	why := Allowed(name)
	if why == "" && slices.Contains(credentials, strings.ToLower(name)) {
		return "this header says who asks, and whoever writes a message could be anybody with it"
	}
	return why
}

// Sendable says whether a header may have this value.
func Sendable(value string) bool { return sendable([]byte(value)) }

// sendable is RFC 9110's rule for values of headers, section 5.5, without blanks at the
// ends, which would not arrive.
func sendable(value []byte) bool {
	for _, c := range value {
		if c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return strings.Trim(string(value), " \t") == string(value)
}
