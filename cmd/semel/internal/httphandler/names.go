package httphandler

import (
	"slices"
	"strings"

	"github.com/semel-go/semel/cmd/semel/internal/headername"
)

// ours are headers that every request gets, or that belong to its connection. A message that could set
// them could split a request in two or pretend to be another client.
var ours = []string{
	"connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade", "expect",
	"host", "content-length", "content-type", "content-encoding", "accept-encoding", "user-agent", "forwarded", "via",
	strings.ToLower(headerKey), "x-idempotency-key", "traceparent", "tracestate",
}

// oursBegin are prefixes of further such headers.
var oursBegin = []string{"ce-", "semel-", "webhook-", "proxy-", "x-forwarded-"}

// credentials are headers that authenticate the client: the policy may set them, a message may not.
var credentials = []string{"authorization", "cookie", "x-api-key"}

// Allowed returns why the policy may not set a header with this name; empty if it may.
func Allowed(name string) string {
	lower := strings.ToLower(name)
	switch {
	case !headername.Valid(name):
		return "this is not a valid header name"
	case slices.Contains(ours, lower) || slices.ContainsFunc(oursBegin, func(p string) bool { return strings.HasPrefix(lower, p) }):
		return "this header is set by Semel, or belongs to the connection"
	}
	return ""
}

// Passable returns why a header with this name may not be copied from a message; empty if it may.
func Passable(name string) string {
	why := Allowed(name)
	if why == "" && slices.Contains(credentials, strings.ToLower(name)) {
		return "this header authenticates the client; a message must not set it"
	}
	return why
}

// Sendable reports whether a header may have this value.
func Sendable(value string) bool { return sendable([]byte(value)) }

// sendable is the rule of RFC 9110, section 5.5, for header values, without leading and trailing
// blanks, which would be removed on the way.
func sendable(value []byte) bool {
	for _, c := range value {
		if c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return strings.Trim(string(value), " \t") == string(value)
}
