package semel

import (
	"regexp"
	"strings"
	"testing"

	"github.com/semel-go/semel/internal/semelheader"
)

func keyed(consumer, source, id string) *Message {
	return &Message{Identity: Key{consumer, source, id}}
}

var uuidVersion8 = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)

// shopEvent returns a message of the producer "shop".
func shopEvent(id string) *Message {
	return &Message{Headers: Headers{{"ce-source", []byte("shop")}, {"ce-id", []byte(id)}, {"ce-type", []byte("payment.made")}, {"ce-specversion", []byte("1.0")}}}
}

func TestDerivedIDsAreStableAndNeverShared(t *testing.T) {
	texts := []string{"", "a", "b", "ab", "a/b", "a\x00b", "%", "%2F", "1:a", "é", "e\u0301", "\xff"}
	var ids []func(m *Message) string
	for _, x := range texts {
		ids = append(ids, func(m *Message) string { return m.IdempotencyKey(x) })
		for _, y := range texts {
			ids = append(ids, func(m *Message) string { return m.OutputID(x, y) })
		}
	}
	messages := []*Message{keyed("c", "s", "1"), keyed("c", "s1", "1"), keyed("cs", "", "1"), keyed("", "cs", "1"), keyed("c", "", "s1"), keyed("c", "s", "11")}
	t.Run("B7_a_key_is_of_identity_and_step", func(t *testing.T) {
		seen := map[string]bool{}
		for _, m := range messages {
			for _, id := range ids {
				text := id(m)
				if seen[text] || !uuidVersion8.MatchString(text) {
					t.Errorf("%s is not unique or not a UUID", text)
				}
				seen[text] = true
			}
		}
	})
	t.Run("B8_a_readable_name_is_of_identity_purpose_and_recipient", func(t *testing.T) {
		seen := map[string]bool{}
		for _, m := range messages {
			for _, purpose := range texts {
				for _, recipient := range texts {
					name := m.OutputName(purpose, recipient)
					if seen[name] || strings.Count(name, "/") != 4 {
						t.Errorf("%s is shared", name)
					}
					seen[name] = true
				}
			}
		}
	})
	t.Run("B7_attempts_copies_and_headers_make_no_difference", func(t *testing.T) {
		a, b := keyed("c", "s", "1"), keyed("c", "s", "1")
		b.Attempt, b.Headers, b.Body, b.Origin.Offset, b.Topic = 7, Headers{{"x", nil}}, []byte("{}"), 9, "retry"
		if a.IdempotencyKey("charge") != b.IdempotencyKey("charge") || a.OutputID("p", "r") != b.OutputID("p", "r") {
			t.Error("a copy of the message has different ids")
		}
	})
	t.Run("IdempotencyKey panics without an identity", func(t *testing.T) {
		defer func() {
			if recover() == nil {
				t.Error("a message without identity got a key")
			}
		}()
		(&Message{}).IdempotencyKey("charge")
	})
}

func TestDerivedIDsNeverChange(t *testing.T) {
	// Providers have stored the idempotency keys, and consumers have stored the ids. If an upgrade of Semel changed a
	// key or an id, a payment could be made twice.
	m := keyed("billing", "shop", "order-7")
	if got := m.IdempotencyKey("charge"); got != "4fb4ea48-b05a-8d84-87fe-27243e3594cc" {
		t.Error(got)
	}
	if got := m.OutputID("receipt", "alice"); got != "673ad387-e799-8822-938d-aa3cf00d7bc9" {
		t.Error(got)
	}
}

func TestOutputsCarryTheirCause(t *testing.T) {
	header := func(h Headers, name string) string { v, _ := h.Get(name); return string(v) }
	t.Run("C14_cause_is_the_message_and_it_begins_a_correlation", func(t *testing.T) {
		out := shopEvent("1").Causation()
		if len(out) != 2 || header(out, semelheader.Causation) != "1" || header(out, semelheader.Correlation) != "1" {
			t.Errorf("%s", out)
		}
	})
	t.Run("C14_an_incoming_correlation_goes_on", func(t *testing.T) {
		for _, name := range correlationHeaders {
			m := shopEvent("1")
			m.Headers = append(m.Headers, Header{strings.ToUpper(name), []byte("root")})
			m.Identity = Key{"c", "s", "2"}
			out := m.Causation()
			if header(out, semelheader.Causation) != "2" || header(out, semelheader.Correlation) != "root" {
				t.Errorf("%s: %s", name, out)
			}
		}
	})
	t.Run("C14_a_chain_of_outputs_keeps_its_root", func(t *testing.T) {
		first := shopEvent("1")
		second := &Message{Headers: first.Causation(), Identity: Key{"c", "s", "2"}}
		third := &Message{Headers: second.Causation(), Identity: Key{"c", "s", "3"}}
		out := third.Causation()
		if header(out, semelheader.Causation) != "3" || header(out, semelheader.Correlation) != "1" {
			t.Errorf("%s", out)
		}
	})
	t.Run("C14_trace_context_inside_a_CloudEvent_goes_on_where_its_transport_has_none", func(t *testing.T) {
		m := shopEvent("1")
		m.Headers = append(m.Headers, Header{"ce-traceparent", []byte("00-inside")}, Header{"ce-tracestate", []byte("a=1")})
		if out := m.Causation(); header(out, "traceparent") != "00-inside" || header(out, "tracestate") != "a=1" {
			t.Errorf("%v", out)
		}
		m.Headers = append(m.Headers, Header{"traceparent", []byte("00-outside")})
		if out := m.Causation(); header(out, "traceparent") != "00-outside" || header(out, "tracestate") != "" {
			t.Errorf("%v", out)
		}
	})
	t.Run("C14_trace_context_is_passed_on_as_it_came", func(t *testing.T) {
		m := shopEvent("1")
		m.Headers = append(m.Headers, Header{"tracestate", []byte("a=1")})
		if out := m.Causation(); header(out, "tracestate") != "" {
			t.Errorf("a tracestate without traceparent: %s", out)
		}
		m.Headers = append(m.Headers, Header{"TraceParent", []byte("00-x")}, Header{"tracestate", []byte("b=2")})
		out := m.Causation()
		if len(out) != 5 || header(out, "traceparent") != "00-x" || string(out[3].Value)+string(out[4].Value) != "a=1b=2" {
			t.Errorf("%s", out)
		}
	})
	t.Run("trap_85_an_id_forges_no_header", func(t *testing.T) {
		m := keyed("c", "s", "1\r\nadmin: yes")
		for _, h := range m.Causation() {
			if strings.ContainsAny(string(h.Value), "\r\n") {
				t.Errorf("%q", h.Value)
			}
		}
	})
	t.Run("a message without id gives nothing of its own", func(t *testing.T) {
		if out := (&Message{}).Causation(); len(out) != 0 {
			t.Errorf("%s", out)
		}
	})
}
