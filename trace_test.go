package semel

import (
	"strings"
	"testing"
)

const (
	traced   = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	untraced = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"
)

func withHeaders(pairs ...string) *Message {
	m := &Message{}
	for i := 0; i < len(pairs); i += 2 {
		m.Headers = append(m.Headers, Header{pairs[i], []byte(pairs[i+1])})
	}
	return m
}

func TestTheTraceContextOfAMessage(t *testing.T) {
	t.Run("C14_it_is_read_from_the_headers_and_written_as_it_was", func(t *testing.T) {
		m := withHeaders("Traceparent", traced, "tracestate", "a=1", "TraceState", "b=2")
		c, ok := m.TraceContext()
		if !ok || c.Traceparent() != traced || c.State != "a=1,b=2" || !c.Sampled() || !m.Sampled() {
			t.Errorf("%t, %s, %q", ok, c.Traceparent(), c.State)
		}
	})
	t.Run("C14_one_that_is_not_sampled_is_one", func(t *testing.T) {
		m := withHeaders("traceparent", untraced)
		if c, ok := m.TraceContext(); !ok || c.Sampled() || m.Sampled() || c.Traceparent() != untraced {
			t.Errorf("%t %+v", ok, c)
		}
	})
	t.Run("C14_inside_an_event_it_counts_where_the_transport_has_none", func(t *testing.T) {
		m := withHeaders("ce-traceparent", traced, "ce-tracestate", "a=1")
		if c, ok := m.TraceContext(); !ok || c.State != "a=1" || !m.Sampled() {
			t.Errorf("%t %+v", ok, c)
		}
		m.Headers = append(m.Headers, Header{"traceparent", []byte(untraced)})
		if c, ok := m.TraceContext(); !ok || c.State != "" || m.Sampled() {
			t.Errorf("%t %+v", ok, c)
		}
	})
	t.Run("C14_of_a_later_version_what_is_known_is_read", func(t *testing.T) {
		for _, later := range []string{"01" + traced[2:], "01" + traced[2:] + "-more"} {
			if c, ok := withHeaders("traceparent", later).TraceContext(); !ok || c.Traceparent() != traced {
				t.Errorf("%s: %t %+v", later, ok, c)
			}
		}
	})
	t.Run("C14_what_is_none_is_none", func(t *testing.T) {
		for _, bad := range []string{
			"", "00", "x", traced[:54], traced + "-more", "01" + traced[2:] + "more", "ff" + traced[2:], strings.ToUpper(traced),
			"00-00000000000000000000000000000000-b7ad6b7169203331-01", "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
			strings.Replace(traced, "-", "_", 1), strings.Replace(traced, "b7ad", "b7ag", 1), traced[:54] + "g", traced[:54] + "G", traced[:54] + "\xff",
		} {
			m := withHeaders("traceparent", bad, "tracestate", "a=1")
			if c, ok := m.TraceContext(); ok || m.Sampled() || c != (TraceContext{}) {
				t.Errorf("%q is read as %+v", bad, c)
			}
		}
		if _, ok := withHeaders("tracestate", "a=1").TraceContext(); ok {
			t.Error("a tracestate without traceparent counts as a trace context")
		}
	})
	t.Run("C14_both_ways_of_asking_whether_it_is_sampled_say_the_same", func(t *testing.T) {
		for c := range 256 {
			m := withHeaders("traceparent", traced[:54]+string([]byte{byte(c)}))
			if context, ok := m.TraceContext(); m.Sampled() != (ok && context.Sampled()) {
				t.Errorf("%q: Sampled says %t", byte(c), m.Sampled())
			}
		}
	})
	t.Run("C14_a_copy_of_the_message_has_another_and_the_message_its_own", func(t *testing.T) {
		m := withHeaders("a", "1", "ce-traceparent", untraced, "CE-Tracestate", "x=1", "b", "2")
		c, _ := withHeaders("traceparent", traced).TraceContext()
		c.State = "y=2"
		out := m.WithTraceContext(c)
		if got, ok := out.TraceContext(); !ok || got != c || len(out.Headers) != 4 {
			t.Errorf("%t %+v of %s", ok, got, out.Headers)
		}
		if len(m.Headers) != 4 || m.Sampled() {
			t.Errorf("the message was changed: %s", m.Headers)
		}
	})
}

func FuzzTraceparent(f *testing.F) {
	f.Add(traced)
	f.Add("01" + traced[2:] + "-x")
	f.Fuzz(func(t *testing.T, s string) {
		m := withHeaders("traceparent", s)
		c, ok := m.TraceContext()
		if m.Sampled() != (ok && c.Sampled()) {
			t.Errorf("%q: Sampled says %t", s, m.Sampled())
		}
		if again, is := withHeaders("traceparent", c.Traceparent()).TraceContext(); ok && (!is || again != c) {
			t.Errorf("%q: %+v is parsed again as %+v", s, c, again)
		}
	})
}

// BenchmarkSampled measures Sampled for a message with five headers.
func BenchmarkSampled(b *testing.B) {
	for name, headers := range map[string][]string{"none": {"id", "1", "ce-type", "a", "content-type", "b", "ce-source", "c", "x-request-id", "d"},
		"unsampled": {"id", "1", "ce-type", "a", "content-type", "b", "ce-source", "c", "traceparent", untraced}, "sampled": {"id", "1", "ce-type", "a", "content-type", "b", "ce-source", "c", "traceparent", traced}} {
		b.Run(name, func(b *testing.B) {
			m := withHeaders(headers...)
			b.ReportAllocs()
			for b.Loop() {
				m.Sampled()
			}
		})
	}
}
