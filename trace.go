package semel

import (
	"encoding/hex"
	"strings"
)

// The headers of a trace context (W3C Trace Context, https://www.w3.org/TR/trace-context/).
const (
	headerTraceparent = "traceparent"
	headerTracestate  = "tracestate"
	// insideEvent begins their names where they are attributes of a CloudEvent.
	insideEvent = "ce-"
)

// TraceContext is where in a trace something stands, as the headers traceparent and
// tracestate say it (W3C Trace Context, section 3).
type TraceContext struct {
	TraceID [16]byte
	// SpanID is the span in which the message was sent: the parent of what follows.
	SpanID [8]byte
	// Flags are the trace-flags: bit 0 says that the trace is sampled.
	Flags byte
	// State is the tracestate as it came, several headers of it joined by commas. Nobody has
	// read it.
	State string
}

// Sampled reports whether who began the trace records it.
func (t TraceContext) Sampled() bool { return t.Flags&1 != 0 }

// Traceparent is the header that says it, of version 00.
func (t TraceContext) Traceparent() string {
	b := make([]byte, 0, traceparentLength)
	b = append(b, "00-"...)
	b = hex.AppendEncode(b, t.TraceID[:])
	b = hex.AppendEncode(append(b, '-'), t.SpanID[:])
	return string(hex.AppendEncode(append(b, '-'), []byte{t.Flags}))
}

// TraceContext returns the trace context that m came with, and whether there is one that can
// be read: the headers traceparent and tracestate or, where the transport has none, the
// attributes of these names of a CloudEvent. A handler of a message whose span is recorded
// (measure.Tracer) sees that span there, so that what it calls is told as caused by it.
func (m *Message) TraceContext() (TraceContext, bool) {
	of, parent := m.traceparent()
	t, ok := parseTraceparent(parent)
	if ok {
		t.State = m.tracestate(of)
	}
	return t, ok
}

// Sampled reports whether m came with a trace context that is sampled. It allocates nothing.
func (m *Message) Sampled() bool {
	_, parent := m.traceparent()
	if len(parent) < traceparentLength || !sampledDigit(parent[traceparentLength-1]) {
		return false
	}
	_, ok := parseTraceparent(parent)
	return ok
}

// sampledDigit reports whether the last digit of trace-flags has bit 0; parseTraceparent says
// whether it is one at all.
func sampledDigit(c byte) bool {
	if c >= 'a' {
		return (c-'a')&1 != 0 // b, d, f
	}
	return c&1 != 0
}

// WithTraceContext returns a copy of m that came with t. It shares all but its headers with m.
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

// traceparent is the header that counts, with what its name begins with: the transport's own
// is newer than the one inside the event. It is nil if there is none.
func (m *Message) traceparent() (of string, parent []byte) {
	var inside []byte
	for i := range m.Headers {
		switch name := m.Headers[i].Name; len(name) { // most names differ in their lengths
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

// tracestate joins what may stand in several headers, whose order counts.
func (m *Message) tracestate(of string) string {
	var all []string
	for i := range m.Headers {
		if strings.EqualFold(m.Headers[i].Name, of+headerTracestate) {
			all = append(all, string(m.Headers[i].Value))
		}
	}
	return strings.Join(all, ",")
}

// traceparentLength is how long a traceparent of version 00 is.
const traceparentLength = len("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")

// parseTraceparent reads a traceparent as section 3.2 says: a version that is not known is
// read as 00, with more behind it, and lower case is a must.
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

// lowerHex decodes digits of lower case.
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

// digit is the value of a hexadecimal digit of lower case, and more than 15 of anything else.
func digit(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10
	}
	return 0xff
}
