package semel

import (
	"strings"

	"github.com/semel-go/semel/internal/legible"
	"github.com/semel-go/semel/internal/semelheader"
)

// correlationHeaders are the headers of an incoming message that may contain a correlation id. The first
// header that exists is used.
var correlationHeaders = [...]string{semelheader.Correlation, "ce-correlationid", "correlation-id", "x-correlation-id"}

// Causation returns the headers for a message that is sent because of m:
//   - semel-causation-id: the id of m;
//   - semel-correlation-id: the correlation id of m. This is the value of the first existing header of
//     semel-correlation-id, ce-correlationid, correlation-id and x-correlation-id. If m has none of these headers, the
//     correlation id is the id of m;
//   - traceparent and tracestate: the trace context of m, from its headers or, if the transport has none, from
//     its CloudEvents attributes (ce-traceparent, ce-tracestate).
//
// Control characters in ids are escaped, so that an id cannot forge a header. If m has no id, Causation
// returns only those headers that m itself has.
func (m *Message) Causation() Headers {
	id := m.Identity.ID
	if id == "" {
		id = m.ID()
	}
	var out Headers
	out = out.with(semelheader.Causation, id)
	out = out.with(semelheader.Correlation, m.correlation(id))
	of, parent := m.traceparent()
	if parent == nil {
		return out // a tracestate without a traceparent has no meaning (W3C Trace Context, section 3.3)
	}
	out = append(out, Header{headerTraceparent, parent})
	for i := range m.Headers {
		if strings.EqualFold(m.Headers[i].Name, of+headerTracestate) { // the header may be repeated, and the order matters
			out = append(out, Header{headerTracestate, m.Headers[i].Value})
		}
	}
	return out
}

func (m *Message) correlation(own string) string {
	for _, name := range correlationHeaders {
		if v, ok := m.Headers.Get(name); ok && len(v) > 0 {
			return string(v)
		}
	}
	return own
}

func (h Headers) with(name, value string) Headers {
	if value == "" {
		return h
	}
	return append(h, Header{name, []byte(legible.Printable(value))})
}
