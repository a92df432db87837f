package semel

import (
	"encoding/hex"
	"strings"
)

// The headers of a trace context (W3C Trace Context, https://www.w3.org/TR/trace-context/).
const (
	headerTraceparent = "traceparent"
	headerTracestate  = "tracestate"
	// insideEvent is the prefix of these names when they are CloudEvents attributes.
	insideEvent = "ce-"
)

// TraceContext is a position in a trace, as given by the headers traceparent and tracestate (W3C Trace Context,
// section 3).
type TraceContext struct {
	TraceID [16]byte
	// SpanID is the span in which the message was sent. Later spans have this span as their parent.
	SpanID [8]byte
	// Flags are the trace-flags: bit 0 means that the trace is sampled.
	Flags byte
	// State is the tracestate, unparsed. If there are several headers, they are joined by commas.
	State string
}

// Sampled reports whether the trace is sampled.
func (t TraceContext) Sampled() bool { return t.Flags&1 != 0 }

// Traceparent returns the header traceparent in version 00.
func (t TraceContext) Traceparent() string {
	b := make([]byte, 0, traceparentLength)
	b = append(b, "00-"...)
	b = hex.AppendEncode(b, t.TraceID[:])
	b = hex.AppendEncode(append(b, '-'), t.SpanID[:])
	return string(hex.AppendEncode(append(b, '-'), []byte{t.Flags}))
}

// TraceContext returns the trace context of m. The bool is false if m has no valid trace context.
// TraceContext reads the headers traceparent and tracestate. If the transport has no such headers,
// TraceContext reads the CloudEvents attributes with these names. If the span of the message is recorded
// (measure.Tracer), a handler gets that span, so that the spans of the handler's calls become its children.
func (m *Message) TraceContext() (TraceContext, bool) {
	of, parent := m.traceparent()
	t, ok := parseTraceparent(parent)
	if ok {
		t.State = m.tracestate(of)
	}
	return t, ok
}

// Sampled reports whether m has a trace context that is sampled. Sampled does not allocate memory.
func (m *Message) Sampled() bool {
	_, parent := m.traceparent()
	if len(parent) < traceparentLength || !sampledDigit(parent[traceparentLength-1]) {
		return false
	}
	_, ok := parseTraceparent(parent)
	return ok
}

// sampledDigit reports whether the last digit of trace-flags has bit 0 set. parseTraceparent checks that the
// byte is a digit.
func sampledDigit(c byte) bool {
	if c >= 'a' {
		return (c-'a')&1 != 0 // b, d, f
	}
	return c&1 != 0
}

// WithTraceContext returns a copy of m with trace context t. The copy has its own headers and shares all
// other data with m.
func (m *Message) WithTraceContext(t TraceContext) *Message {
	out := *m
	out.Headers = make(Headers, 0, len(m.Headers)+2)
	for _, h := range m.Headers {
		if !isTrace(h.Name) {
			out.Headers = append(out.Headers, h)
		}
	}
	out.Headers = append(out.Headers, Header{headerTraceparent, []byte(t.Traceparent())})
	if t.State != "" {
		out.Headers = append(out.Headers, Header{headerTracestate, []byte(t.State)})
	}
	return &out
}

func isTrace(name string) bool {
	if len(name) > len(insideEvent) && strings.EqualFold(name[:len(insideEvent)], insideEvent) {
		name = name[len(insideEvent):]
	}
	return strings.EqualFold(name, headerTraceparent) || strings.EqualFold(name, headerTracestate)
}

// traceparent returns the valid traceparent and the prefix of its name. The header of the transport is preferred to the
// CloudEvents attribute, because the header is newer. If m has neither the header nor the attribute, the result parent
// is nil.
func (m *Message) traceparent() (of string, parent []byte) {
	var inside []byte
	for i := range m.Headers {
		switch name := m.Headers[i].Name; len(name) { // compares lengths first, because most names have another length
		case len(headerTraceparent):
			if strings.EqualFold(name, headerTraceparent) {
				return "", m.Headers[i].Value
			}
		case len(insideEvent + headerTraceparent):
			if inside == nil && strings.EqualFold(name, insideEvent+headerTraceparent) {
				inside = m.Headers[i].Value
			}
		}
	}
	return insideEvent, inside
}

// tracestate joins the values of repeated tracestate headers in their order.
func (m *Message) tracestate(of string) string {
	var all []string
	for i := range m.Headers {
		if strings.EqualFold(m.Headers[i].Name, of+headerTracestate) {
			all = append(all, string(m.Headers[i].Value))
		}
	}
	return strings.Join(all, ",")
}

// traceparentLength is the length of a traceparent in version 00.
const traceparentLength = len("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")

// parseTraceparent parses a traceparent as section 3.2 requires. An unknown version is parsed like version 00
// and may have more fields. Upper-case digits are invalid.
func parseTraceparent(s []byte) (t TraceContext, ok bool) {
	if len(s) < traceparentLength || s[2] != '-' || s[35] != '-' || s[52] != '-' {
		return t, false
	}
	var version, flags [1]byte
	for _, part := range [...]struct {
		to   []byte
		from []byte
	}{{version[:], s[:2]}, {t.TraceID[:], s[3:35]}, {t.SpanID[:], s[36:52]}, {flags[:], s[53:55]}} {
		if !lowerHex(part.to, part.from) {
			return TraceContext{}, false
		}
	}
	switch {
	case version[0] == 0xff, version[0] == 0 && len(s) > traceparentLength, len(s) > traceparentLength && s[traceparentLength] != '-':
		return TraceContext{}, false
	case t.TraceID == [16]byte{}, t.SpanID == [8]byte{}:
		return TraceContext{}, false
	}
	t.Flags = flags[0]
	return t, true
}

// lowerHex decodes lower-case hexadecimal digits.
func lowerHex(to, from []byte) bool {
	for i := range to {
		high, low := digit(from[2*i]), digit(from[2*i+1])
		if high > 15 || low > 15 {
			return false
		}
		to[i] = high<<4 | low
	}
	return true
}

// digit returns the value of a lower-case hexadecimal digit, and more than 15 for any other byte.
func digit(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10
	}
	return 0xff
}
