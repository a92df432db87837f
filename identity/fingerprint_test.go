package identity

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/reading"
	"github.com/semel-go/semel/internal/selectors"
)

func fingerprintOf(t *testing.T, f Fingerprinter, m *semel.Message) semel.Fingerprint {
	t.Helper()
	if err := f.Validate(); err != nil {
		t.Fatal(err)
	}
	sum, err := f.Fingerprint(m)
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

func TestABodysFingerprintIsOfItsContent(t *testing.T) {
	f := FingerprintBody()
	conflicts := func(a, b string) bool {
		return fingerprintOf(t, f, withBody(a)).Conflicts(fingerprintOf(t, f, withBody(b)))
	}
	t.Run("trap_73_another_payload_is_a_conflict", func(t *testing.T) {
		for _, other := range []string{`{"amount":11}`, `{"amount":"10"}`, `{"amount":10,"x":null}`, `{}`, ``, `plain`, `{"amount":10`} {
			if !conflicts(`{"amount":10}`, other) {
				t.Errorf("%s has the same fingerprint", other)
			}
		}
	})
	t.Run("trap_74_key_order_number_format_and_white_space_are_no_conflict", func(t *testing.T) {
		for _, other := range []string{`{"b":[1,"é"],"a":1.0}`, "{\n \"a\": 1e0,\t\"b\": [ 1.00, \"\\u00e9\" ] }\r\n", `{"\u0061":10e-1,"b":[1,"é"]}`} {
			if conflicts(`{"a":1,"b":[1,"é"]}`, other) {
				t.Errorf("%s has another fingerprint", other)
			}
		}
	})
	t.Run("trap_74_headers_are_left_out", func(t *testing.T) {
		m := withBody(`{}`)
		m.Headers = semel.Headers{{Name: "traceparent", Value: []byte("x")}}
		if fingerprintOf(t, f, m) != fingerprintOf(t, f, withBody(`{}`)) {
			t.Error("a header changed the fingerprint")
		}
	})
	t.Run("trap_T22_numbers_beyond_floats_differ", func(t *testing.T) {
		if !conflicts(`9007199254740992`, `9007199254740993`) || !conflicts(`1e400000`, `1e400001`) || !conflicts(`0.1`, `0.10000000000000000001`) {
			t.Error("different numbers have the same fingerprint")
		}
	})
	t.Run("a body that is no JSON is compared byte for byte", func(t *testing.T) {
		if conflicts("\xff x", "\xff x") || !conflicts("\xff x", "\xff  x") || !conflicts(`{"a":1,"a":1}`, `{"a":1, "a":1}`) {
			t.Error("bodies with other bytes have the same fingerprint")
		}
	})
	t.Run("order in arrays is content", func(t *testing.T) {
		if !conflicts(`[1,2]`, `[2,1]`) {
			t.Error("the order in an array makes no difference")
		}
	})
	t.Run("trap_T18_an_identity_shared_by_accident_is_seen", func(t *testing.T) {
		a, b := event("shop", "1"), event("shop", "1")
		b.Body = []byte(`{"id":8,"name":"y"}`)
		if !fingerprintOf(t, f, a).Conflicts(fingerprintOf(t, f, b)) {
			t.Error("another message under the same id would be dropped as a duplicate")
		}
	})
}

func TestFingerprintsOfTheFirstVersionNeverChange(t *testing.T) {
	// Stored fingerprints are compared with new fingerprints. If these values changed, every redelivery after
	// an upgrade would be a conflict. A new rule must get a new version.
	for body, want := range map[string]string{
		`{"b":[1,"é",null,true],"a":1.50}`: "1 eb8bd78cef0adf2c857cd3419c5e9e44",
		"not JSON\xff":                     "1 49d74165ddddcf5046275713209eea6e",
	} {
		got := fingerprintOf(t, FingerprintBody(), withBody(body))
		if text := fmt.Sprintf("%d %x", got.Version, got.Sum); text != want {
			t.Errorf("%q: %s, want %s", body, text, want)
		}
	}
	got := fingerprintOf(t, FingerprintOf("body:/a", "header:x?"), withBody(`{"a":1.50}`))
	if text := fmt.Sprintf("%d %x", got.Version, got.Sum); text != "93 3c40712b2c75a16126c53ede2079af37" {
		t.Errorf("%s", text)
	}
}

func TestNoFingerprintConflictsWithNothing(t *testing.T) {
	none := fingerprintOf(t, FingerprintNone(), withBody("a"))
	if none != (semel.Fingerprint{}) || none.Conflicts(fingerprintOf(t, FingerprintBody(), withBody("b"))) {
		t.Errorf("%v", none)
	}
}

func TestSelectedValuesDecideAFingerprint(t *testing.T) {
	of := func(m *semel.Message, selectors ...string) semel.Fingerprint {
		return fingerprintOf(t, FingerprintOf(selectors...), m)
	}
	t.Run("trap_74_an_added_optional_field_is_no_conflict", func(t *testing.T) {
		a, b := withBody(`{"amount":10,"to":{"a":1,"b":2}}`), withBody(`{"note":"new","to":{"b":2.0,"a":1},"amount":1e1}`)
		if of(a, "body:/amount", "body:/to") != of(b, "body:/amount", "body:/to") {
			t.Error("the same content has two fingerprints")
		}
		if !of(a, "body:/amount").Conflicts(of(withBody(`{"amount":11}`), "body:/amount")) {
			t.Error("another amount has the same fingerprint")
		}
	})
	t.Run("values of different kinds and positions are never equal", func(t *testing.T) {
		seen := map[semel.Fingerprint]string{}
		for _, body := range []string{`{}`, `{"a":null}`, `{"a":""}`, `{"a":"1"}`, `{"a":1}`, `{"a":true}`, `{"a":"true"}`, `{"a":[]}`, `{"a":"[]"}`,
			`{"a":"x","b":"y"}`, `{"a":"xy"}`, `{"b":"xy"}`, `{"a":"","b":"xy"}`, `{"a":{"b":1}}`, `{"a":{"b":2}}`} {
			f := of(withBody(body), "body:/a", "body:/b")
			if other, ok := seen[f]; ok {
				t.Errorf("%s and %s have one fingerprint", other, body)
			}
			seen[f] = body
		}
	})
	t.Run("case_14_a_changed_list_makes_no_false_conflict", func(t *testing.T) {
		m := withBody(`{"a":1,"b":2}`)
		lists := [][]string{{"body:/a"}, {"body:/b"}, {"body:/a", "body:/b"}, {"body:/b", "body:/a"}, {"body:/a?"}}
		for i, old := range lists {
			if of(m, old...).Conflicts(fingerprintOf(t, FingerprintBody(), m)) {
				t.Errorf("%v conflicts with the whole body", old)
			}
			for _, changed := range lists[i+1:] {
				if of(m, old...).Conflicts(of(m, changed...)) {
					t.Errorf("%v conflicts with %v", old, changed)
				}
			}
		}
	})
	t.Run("a malformed body is an error", func(t *testing.T) {
		var fault *selectors.Error
		if _, err := FingerprintOf("body:/a").Fingerprint(withBody("{")); !errors.As(err, &fault) || fault.Reason != semel.ReasonMalformed {
			t.Errorf("%v", err)
		}
	})
}

func TestAFingerprintOfValuesThatDifferBetweenCopiesIsRejected(t *testing.T) {
	for selector, want := range map[string]string{
		"offset": "between copies", "partition": "between copies", "topic": "between copies", "header:x-death": "between copies", "header:semel-attempts": "between copies",
		"const:x": "other than a constant", "headr:x": "did you mean",
	} {
		f := FingerprintOf(selector)
		if err := f.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", selector, err)
		}
	}
	if err := FingerprintOf().Validate(); err == nil {
		t.Error("Validate accepted an empty list")
	}
	if _, err := FingerprintOf("headr:x").Fingerprint(withBody("{}")); err == nil {
		t.Error("a faulty list returned a fingerprint")
	}
}

func BenchmarkFingerprintOfABodyOf1KiB(b *testing.B) {
	line := `{"sku":"SKU-00001","quantity":3,"price":12.5,"note":null,"tags":["a","b"],"gift":false},`
	m, f := withBody(`{"id":"018f4e7a","lines":[`+strings.Repeat(line, 11)+`{}]}`), FingerprintBody()
	b.SetBytes(int64(len(m.Body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := f.Fingerprint(m); err != nil {
			b.Fatal(err)
		}
	}
}

func TestAFingerprintCostsNoMemory(t *testing.T) {
	by, room, m := bodyFingerprint{}, new(reading.Room), withBody(`{"b":[1.50,"\u00e9"],"a":{"d":null,"c":true}}`)
	n := testing.AllocsPerRun(100, func() {
		if _, err := by.FingerprintIn(room, m); err != nil {
			t.Fatal(err)
		}
		room.Forget()
	})
	if n > 0 {
		t.Errorf("%v allocations", n)
	}
}
