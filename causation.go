package semel

import (
	"strings"

	"github.com/semel-go/semel/internal/legible"
	"github.com/semel-go/semel/internal/semelheader"
)

// correlationHeaders are the headers of an incoming message that may contain a correlation id; the first one
// counts.
var correlationHeaders = [...]string{semelheader.Correlation, "ce-correlationid", "correlation-id", "x-correlation-id"}

// Causation returns the headers for an output that m causes:
//   - semel-causation-id: the id of m;
//   - semel-correlation-id: the correlation id of m, which is the first of the headers semel-correlation-id,
//     ce-correlationid, correlation-id and x-correlation-id; without one of them the id of m;
//   - traceparent and tracestate: the trace context of m, from its headers or, if the transport has none, from
//     its CloudEvents attributes (ce-traceparent, ce-tracestate).
//
// Control characters in ids are escaped, so that an id cannot forge a header. If m has no id, only the headers
// that m brought are returned.
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
		return out // a tracestate without a traceparent means nothing (W3C Trace Context, section 3.3)
	}
	out = append(out, Header{headerTraceparent, parent})
	for i := range m.Headers {
		if strings.EqualFold(m.Headers[i].Name, of+headerTracestate) { // the header may be repeated; the order matters
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
