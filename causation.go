package semel

import (
	"strings"

	"github.com/semel-go/semel/internal/legible"
	"github.com/semel-go/semel/internal/semelheader"
)

// correlationHeaders are looked for in an incoming message, in this order.
var correlationHeaders = [...]string{semelheader.Correlation, "ce-correlationid", "correlation-id", "x-correlation-id"}

// Causation returns the headers that an output of m should carry: the id of m
// as its cause (semel-causation-id), the correlation id that m came with (semel-correlation-id,
// ce-correlationid, correlation-id or x-correlation-id, the first that is
// there) or else the id of m, and the trace context (traceparent, tracestate)
// as it came, with the transport or, where that has none, as attributes of a CloudEvent
// (ce-traceparent, ce-tracestate). The ids are written as Printable writes them, so that an id can
// forge no header. A message without id gives only what it came with.
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
		return out // a tracestate alone means nothing (W3C Trace Context, section 3.3)
	}
	out = append(out, Header{headerTraceparent, parent})
	for i := range m.Headers {
		if strings.EqualFold(m.Headers[i].Name, of+headerTracestate) { // it may stand several times; the order counts
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
