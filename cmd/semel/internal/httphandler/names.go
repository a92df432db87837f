package httphandler

import (
	"slices"
	"strings"

	"github.com/semel-go/semel/cmd/semel/internal/headername"
)

// reservedHeaders lists headers that Semel sets for every request, or that control the connection. A message that could
// set one of these headers could split a request in two, or pretend to come from another client.
var reservedHeaders = []string{
	"connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade", "expect",
	"host", "content-length", "content-type", "content-encoding", "accept-encoding", "user-agent", "forwarded", "via",
	strings.ToLower(headerKey), "x-idempotency-key", "traceparent", "tracestate",
}

// reservedPrefixes lists the prefixes of further headers that Semel sets.
var reservedPrefixes = []string{"ce-", "semel-", "webhook-", "proxy-", "x-forwarded-"}

// credentials lists headers that authenticate the client. The policy may set a header in credentials, but a
// message must not.
var credentials = []string{"authorization", "cookie", "x-api-key"}

// Allowed returns why the policy may not set the header, or "" if the policy may set the header.
func Allowed(name string) string {
	lower := strings.ToLower(name)
	switch {
	case !headername.Valid(name):
		return "this is not a valid header name"
	case slices.Contains(reservedHeaders, lower) || slices.ContainsFunc(reservedPrefixes, func(p string) bool { return strings.HasPrefix(lower, p) }):
		return "this header is set by Semel, or belongs to the connection"
	}
	return ""
}

// Passable returns why the header may not be copied from a message, or "" if the header may be copied.
func Passable(name string) string {
	why := Allowed(name)
	if why == "" && slices.Contains(credentials, strings.ToLower(name)) {
		return "this header authenticates the client; a message must not set it"
	}
	return why
}

// Sendable reports whether value is a valid header value.
func Sendable(value string) bool { return isSendable([]byte(value)) }

// isSendable implements the rule for header values in RFC 9110, section 5.5. A header value with blanks at the
// start or the end is rejected, because other software removes these blanks.
func isSendable(value []byte) bool {
	for _, c := range value {
		if c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return strings.Trim(string(value), " \t") == string(value)
}
