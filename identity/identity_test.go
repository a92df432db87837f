package identity

import (
	"errors"
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/reasonname"
)

// event returns a message with CloudEvents headers.
func event(source, id string) *semel.Message {
	return &semel.Message{
		Headers: semel.Headers{{Name: "ce-source", Value: []byte(source)}, {Name: "ce-id", Value: []byte(id)}, {Name: "ce-type", Value: []byte("payment.made")}, {Name: "ce-specversion", Value: []byte("1.0")}},
		Body:    []byte(`{"id":7,"name":"x"}`),
		Origin:  semel.Origin{Partition: 0, Offset: 12},
	}
}

func withBody(body string) *semel.Message {
	return &semel.Message{Body: []byte(body), Origin: semel.Origin{Partition: -1, Offset: -1}}
}

func mustIdentify(t *testing.T, i Identity, m *semel.Message) string {
	t.Helper()
	if err := i.Validate(); err != nil {
		t.Fatal(err)
	}
	source, id, err := callGuarded(i.Identify, m)
	if err != nil {
		t.Fatal(err)
	}
	return source + "|" + id
}

func wantReason(t *testing.T, i Identity, m *semel.Message, want semel.Reason) {
	t.Helper()
	source, id, err := callGuarded(i.Identify, m)
	var fault *Error
	if !errors.As(err, &fault) {
		t.Fatalf("identity %q %q, error %v; want %s", source, id, err, want)
	}
	if fault.Reason != want || fault.Detail == "" || source != "" || id != "" {
		t.Errorf("%q %q %#v, want %s", source, id, fault, want)
	}
}

func TestTheProducersIdentityIsFound(t *testing.T) {
	t.Run("A2_a_cloudevents_source_and_id", func(t *testing.T) {
		if got := mustIdentify(t, CloudEvents(), event("shop", "1")); got != "shop|1" {
			t.Error(got)
		}
	})
	t.Run("A2_attributes_of_a_structured_event_go_before_headers", func(t *testing.T) {
		m := event("header", "1")
		m.Attributes = semel.Attributes{Source: "shop", ID: "2"}
		if got := mustIdentify(t, CloudEvents(), m); got != "shop|2" {
			t.Error(got)
		}
	})
	t.Run("A2_a_place_in_the_body", func(t *testing.T) {
		m := withBody(`{"payment":{"id":"p-1"},"shop":"a"}`)
		if got := mustIdentify(t, By("body:/payment/id").From("body:/shop"), m); got != "a|p-1" {
			t.Error(got)
		}
	})
	t.Run("A2_the_key", func(t *testing.T) {
		if got := mustIdentify(t, By("key"), &semel.Message{Key: []byte("k\x00\xff")}); got != "|k\x00\xff" {
			t.Errorf("%q", got)
		}
	})
	t.Run("A2_a_business_key_of_several_fields", func(t *testing.T) {
		m := withBody(`{"order":12,"line":"a"}`)
		if got := mustIdentify(t, By("body:/order", "body:/line"), m); got != "|2:12,1:a," {
			t.Error(got)
		}
	})
	t.Run("A2_identities_outlive_the_next_message", func(t *testing.T) {
		i := By("body:/a", "body:/b")
		first := mustIdentify(t, i, withBody(`{"a":"\u0031","b":"x"}`))
		mustIdentify(t, i, withBody(`{"a":"\u0032","b":"y"}`))
		if first != "|1:1,1:x," {
			t.Error(first)
		}
	})
	t.Run("A2_a_function", func(t *testing.T) {
		i := Func(func(m *semel.Message) (string, string, error) { return "s", strings.TrimPrefix(m.Topic, "t-"), nil })
		if got := mustIdentify(t, i, &semel.Message{Topic: "t-9"}); got != "s|9" {
			t.Error(got)
		}
	})
}

func TestTwoSourcesNeverCollide(t *testing.T) {
	t.Run("trap_75_the_same_id_of_two_sources", func(t *testing.T) {
		for _, i := range []Identity{CloudEvents(), By("header:ce-id").From("header:ce-source")} {
			if mustIdentify(t, i, event("a", "1")) == mustIdentify(t, i, event("b", "1")) {
				t.Error("messages of two sources have the same identity")
			}
		}
	})
	t.Run("trap_75_a_source_that_is_suddenly_missing_is_not_the_empty_source", func(t *testing.T) {
		m := event("", "1")
		wantReason(t, CloudEvents(), m, semel.ReasonNoIdentity)
		wantReason(t, By("id").From("header:ce-source"), m, semel.ReasonNoIdentity)
		wantReason(t, By("id").From("header:nowhere"), m, semel.ReasonNoIdentity)
	})
	t.Run("an optional source may be missing or empty", func(t *testing.T) {
		for _, source := range []string{"header:ce-source?", "header:nowhere?"} {
			if got := mustIdentify(t, By("id").From(source), event("", "1")); got != "|1" {
				t.Error(got)
			}
		}
	})
}

func TestCompositeKeysAreUnambiguous(t *testing.T) {
	t.Run("A2_parts_never_run_together", func(t *testing.T) {
		seen := map[string][2]string{}
		parts := []string{"a", "b", "ab", "bc", "c", "1:a", "1:a,", ",", ":", "a,1:b", "1", "12", "2:", "\x00"}
		for _, a := range parts {
			for _, b := range parts {
				m := &semel.Message{Headers: semel.Headers{{Name: "x", Value: []byte(a)}, {Name: "y", Value: []byte(b)}}}
				id := mustIdentify(t, By("header:x", "header:y"), m)
				if other, ok := seen[id]; ok {
					t.Errorf("%q and %q are both %q", other, [2]string{a, b}, id)
				}
				seen[id] = [2]string{a, b}
			}
		}
	})
}

func TestNothingUnusableBecomesAnIdentity(t *testing.T) {
	t.Run("trap_76_a_missing_or_empty_id_is_no_identity", func(t *testing.T) {
		wantReason(t, CloudEvents(), &semel.Message{}, semel.ReasonNoIdentity)
		wantReason(t, CloudEvents(), event("a", ""), semel.ReasonNoIdentity)
		wantReason(t, By("header:x"), &semel.Message{Headers: semel.Headers{{Name: "x"}}}, semel.ReasonNoIdentity)
		wantReason(t, By("key"), &semel.Message{}, semel.ReasonNoIdentity)
		wantReason(t, By("key"), &semel.Message{Key: []byte{}}, semel.ReasonNoIdentity)
		for _, body := range []string{`{}`, `{"id":null}`, `{"id":""}`, `[]`, `"id"`, ``} {
			wantReason(t, By("body:/id"), withBody(body), semel.ReasonNoIdentity)
			wantReason(t, By("body:/id", "const:x"), withBody(body), semel.ReasonNoIdentity)
		}
		wantReason(t, Func(func(*semel.Message) (string, string, error) { return "s", "", nil }), &semel.Message{}, semel.ReasonNoIdentity)
	})
	t.Run("A4_a_malformed_identity_is_refused", func(t *testing.T) {
		for _, body := range []string{`{"id":{}}`, `{"id":[1]}`, `{"id":true}`, `{"id":false}`} {
			wantReason(t, By("body:/id"), withBody(body), semel.ReasonBadIdentity)
		}
	})
	t.Run("A4_a_body_that_is_no_strict_json_is_malformed", func(t *testing.T) {
		for _, body := range []string{`{"id":1`, `{"id":1,"id":2}`, `{"id":"\ud800"}`, "{\"id\":\"\xff\"}", `{"id":1} x`, `plain`} {
			wantReason(t, By("body:/id"), withBody(body), semel.ReasonMalformed)
		}
	})
	t.Run("A4_a_header_that_stands_twice_with_different_values_is_ambiguous", func(t *testing.T) {
		m := event("a", "1")
		m.Headers = append(m.Headers, semel.Header{Name: "CE-ID", Value: []byte("1")})
		if got := mustIdentify(t, CloudEvents(), m); got != "a|1" {
			t.Error(got)
		}
		m.Headers = append(m.Headers, semel.Header{Name: "Ce-Id", Value: []byte("2")})
		wantReason(t, CloudEvents(), m, semel.ReasonMalformed)
	})
	t.Run("reserved sources are refused", func(t *testing.T) {
		wantReason(t, CloudEvents(), event("semel:surrogate", "1"), semel.ReasonBadIdentity)
		wantReason(t, Func(func(*semel.Message) (string, string, error) { return "semel:x", "1", nil }), &semel.Message{}, semel.ReasonBadIdentity)
	})
	t.Run("an error or a panic of a user's function affects only one message", func(t *testing.T) {
		wantReason(t, Func(func(*semel.Message) (string, string, error) { return "s", "1", errors.New("no") }), &semel.Message{}, semel.ReasonBadIdentity)
		wantReason(t, Func(func(m *semel.Message) (string, string, error) { return "", string(m.Key[5]), nil }), &semel.Message{}, semel.ReasonBadIdentity)
		i := Func(func(m *semel.Message) (string, string, error) { panic("secret " + string(m.Body)) })
		if _, _, err := i.Identify(withBody("hunter2")); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%v", err)
		}
	})
}

func TestAnyIDWorks(t *testing.T) {
	distinct := func(t *testing.T, ids ...string) {
		t.Helper()
		seen := map[string]bool{}
		for _, id := range ids {
			got := mustIdentify(t, CloudEvents(), event("s", id))
			if got != "s|"+id || seen[got] {
				t.Errorf("%q became %q", id, got)
			}
			seen[got] = true
		}
	}
	t.Run("trap_78_case_normalisation_and_spaces_make_different_ids", func(t *testing.T) {
		distinct(t, "a", "A", "é", "e\u0301", "x", "x ", " x", "x\t", "ß", "ss", "İ", "i")
	})
	t.Run("trap_80_NUL_in_an_id", func(t *testing.T) {
		distinct(t, "a", "a\x00", "\x00a", "\x00", "\x00\x00")
		if got := mustIdentify(t, By("body:/id"), withBody(`{"id":"a\u0000b"}`)); got != "|a\x00b" {
			t.Errorf("%q", got)
		}
	})
	t.Run("trap_81_invalid_utf8_in_a_header", func(t *testing.T) { distinct(t, "\xff", "\xfe", "\xed\xa0\x80", "\ufffd") })
	t.Run("A6_from_one_byte_to_4_KiB", func(t *testing.T) {
		distinct(t, "x", strings.Repeat("x", semel.MaxID-1), strings.Repeat("x", semel.MaxID))
	})
	t.Run("trap_79_a_longer_id_is_no_identity", func(t *testing.T) {
		wantReason(t, CloudEvents(), event("s", strings.Repeat("x", semel.MaxID+1)), reasonname.IdentityTooLong)
		wantReason(t, CloudEvents(), event("s", strings.Repeat("x", 1<<20)), reasonname.IdentityTooLong)
		wantReason(t, CloudEvents(), event(strings.Repeat("s", semel.MaxID+1), "x"), reasonname.IdentityTooLong)
	})
	t.Run("trap_T22_a_number_is_one_id_however_it_is_written", func(t *testing.T) {
		for body, want := range map[string]string{
			`{"id":1}`: "|1", `{"id":1.0}`: "|1", `{"id":10e-1}`: "|1", `{"id":"1"}`: "|1", `{"id":"1.0"}`: "|1.0",
			`{"id":9007199254740993}`: "|9007199254740993", `{"id":9007199254740992}`: "|9007199254740992", `{"id":-0}`: "|0", `{"id":1e400000}`: "|1e400000",
		} {
			if got := mustIdentify(t, By("body:/id"), withBody(body)); got != want {
				t.Errorf("%s: %s, want %s", body, got, want)
			}
		}
	})
}

func TestValuesThatChangeBetweenCopiesAreRejectedAsIdentity(t *testing.T) {
	refused := func(i Identity, parts ...string) func(*testing.T) {
		return func(t *testing.T) {
			err := i.Validate()
			if err == nil {
				t.Fatal("accepted")
			}
			for _, part := range parts {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%v\ndoes not say %q", err, part)
				}
			}
		}
	}
	t.Run("A3_a_partition", refused(By("partition"), "partition", "use what the producer set"))
	t.Run("A3_an_offset_in_a_composite_key", refused(By("body:/a", "offset"), "offset", "other coordinates"))
	t.Run("A3_the_time", refused(By("time"), "two messages can have one time"))
	t.Run("A3_the_topic", refused(By("topic"), "retry or dead-letter topic"))
	t.Run("A3_a_coordinate_as_source", refused(By("id").From("offset"), "offset"))
	t.Run("A3_a_delivery_count", refused(By("header:X-Delivery-Count"), "every delivery or attempt"))
	t.Run("trap_77_an_id_of_the_attempt", refused(By("header:traceparent"), "business key"))
	t.Run("A3_only_constants", refused(By("const:a", "const:b"), "the same for all messages"))
	t.Run("an optional id", refused(By("header:x?"), "question mark"))
	t.Run("no selector", refused(By(), "at least one selector"))
	t.Run("a reserved source", refused(By("id").From("const:semel:x"), "reserved"))
	t.Run("a nil function", refused(Func(nil), "nil"))
	t.Run("all faults are reported at once", refused(By("headr:x", "offset").From("sorce"), `did you mean "header"`, "offset", `did you mean "source"`))

	t.Run("a constant source or part is fine", func(t *testing.T) {
		mustIdentify(t, By("id", "const:x").From("const:shop"), event("s", "1"))
	})
	t.Run("a faulty identity finds nothing even if nobody validated it", func(t *testing.T) {
		wantReason(t, By("headr:x"), event("s", "1"), semel.ReasonBadIdentity)
	})
}

func BenchmarkIdentityFromAHeader(b *testing.B) {
	m, i := event("shop", "018f4e7a-0000-7000-8000-000000000001"), CloudEvents()
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := callGuarded(i.Identify, m); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkIdentityFromABodyOf1KiB(b *testing.B) {
	line := `{"sku":"SKU-00001","quantity":3,"price":12.5,"note":null,"tags":["a","b"],"gift":false},`
	m, i := withBody(`{"lines":[`+strings.Repeat(line, 11)+`{}],"id":"018f4e7a"}`), By("body:/id")
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := callGuarded(i.Identify, m); err != nil {
			b.Fatal(err)
		}
	}
}

func TestAnIdentityWhoseNameSaysThatItIsNone(t *testing.T) {
	t.Run("A3_is_refused_alone_in_a_composite_and_as_source_and_passes_where_it_is_trusted", func(t *testing.T) {
		for name, make := range map[string]func() *Selected{
			"alone":       func() *Selected { return By("header:x-b3-TraceId") },
			"composite":   func() *Selected { return By("body:/order", "header:X-Retry-Count") },
			"a timestamp": func() *Selected { return By("body:/order", "body:/timestamp") },
			"the source":  func() *Selected { return By("header:ce-id").From("header:x-amzn-trace-id?") },
		} {
			err := make().Validate()
			if err == nil || !strings.Contains(err.Error(), "cannot be an identity") || !strings.Contains(err.Error(), "call Trusted on the identity") {
				t.Errorf("%s: %v", name, err)
			}
			if err := make().Trusted().Validate(); err != nil {
				t.Errorf("%s, trusted: %v", name, err)
			}
		}
		if By("header:delivery-tag?").Trusted().Validate() == nil || By("offset").Trusted().Validate() == nil {
			t.Error("Trusted accepts an optional id, or a coordinate")
		}
		if By("header:date").Trusted().Derivation() != By("header:date").Derivation() {
			t.Error("Trusted changes the derivation")
		}
	})
	t.Run("the_key_alone_is_told_from_a_key_with_more", func(t *testing.T) {
		for _, c := range []struct {
			ids  []string
			want bool
		}{{[]string{"key"}, true}, {[]string{"key", "const:a"}, true}, {[]string{"key", "type"}, false}, {[]string{"const:a"}, false}} {
			if got := By(c.ids...).KeyAlone(); got != c.want {
				t.Errorf("%v: %v", c.ids, got)
			}
		}
	})
}
