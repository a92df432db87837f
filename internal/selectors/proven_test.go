package selectors

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/reading"
)

// proven returns a message whose body was already parsed, as it is when a consumer passes a message to its handler.
func proven(t *testing.T, body string) *semel.Message {
	t.Helper()
	m, room := &semel.Message{Body: []byte(body), Key: []byte("k")}, new(reading.Room)
	if _, err := room.Body(m.Body); err != nil {
		t.Fatal(err)
	}
	m.Strict = room.Proof(m.Body)
	if !m.Strict.Holds(m.Body) {
		t.Fatal("the room has no proof of what it read")
	}
	return m
}

func TestValuesAreTheSameInABodyThatWasReadBefore(t *testing.T) {
	selectors := make([]Selector, 0, 32)
	for _, text := range []string{
		"body:/a", "key", "body:/a/b", "body:/a/b/0", "body:/a/b/1/c", "body:/n", "body:/t", "body:/z", "body:/o", "body:/e?",
		"body:/s", "body:/absent", "body:/\u00e9", "body:", "const:x", "body:/a~1b", "body:/a", "topic", "body:/o/p/q",
	} {
		s, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		selectors = append(selectors, s)
	}
	for _, body := range []string{
		`{"a":{"b":[10,{"c":"x\ny"}]},"n":9007199254740993.10,"t":true,"z":null,"o":{ "p":{"q":"\u0041"} },"e":"","s":"\u00e9"}`,
		` [1,2] `, `"a"`, `null`, `12.50`, `{}`, ` {"\u0061":"\ud83d\ude00","a/b":{"a":1},"\u00e9":[]} `, `{"a":[],"o":[{"p":1}]}`,
	} {
		m := proven(t, body)
		for n := range selectors {
			got, err := Select(m, selectors[:n+1])
			want, wantErr := Select(&semel.Message{Body: m.Body, Key: m.Key}, selectors[:n+1])
			if err != nil || wantErr != nil || !reflect.DeepEqual(texts(got), texts(want)) {
				t.Fatalf("%s: %v (%v) with a proof, %v (%v) without", body, texts(got), err, texts(want), wantErr)
			}
		}
	}
}

func texts(values []Value) (out []string) {
	for _, v := range values {
		out = append(out, fmt.Sprintf("%v %q", v.Kind(), v.Bytes()))
	}
	return out
}

func TestAProofHoldsForOneBody(t *testing.T) {
	m := proven(t, `{"a":1}`)
	s, err := Parse("body:/a")
	if err != nil {
		t.Fatal(err)
	}
	for name, body := range map[string][]byte{"another": []byte(`{"a":1,"a":2}`), "a_part": m.Body[:3], "an_equal_one": []byte(`{"a":`)} {
		copied := *m
		copied.Body = body
		if copied.Strict.Holds(copied.Body) {
			t.Errorf("%s is taken for the body that was read", name)
		}
		if of := (*Error)(nil); !errors.As(second(s.Value(&copied)), &of) || of.Reason != semel.ReasonMalformed {
			t.Errorf("%s is not read strictly", name)
		}
	}
	room := new(reading.Room)
	if _, err := room.Body([]byte(`{"a":`)); err == nil || room.Proof(m.Body).Holds(m.Body) {
		t.Error("a room proves what it did not read")
	}
	broken := bytes.Clone(m.Body[:4])
	if _, err := room.Body(broken); err == nil || room.Proof(broken).Holds(broken) {
		t.Error("a room proves what it refused")
	}
}

func second(_ Value, err error) error { return err }

func BenchmarkThreeParameters(b *testing.B) {
	body := []byte(`{"payment":"5f0c9a52-7c2e-4f0a-9d53-1d0f3a6f2f11","account":"DE89370400440532013000","amount":"129.95","currency":"EUR","purpose":"invoice 2026-001842","created":"2026-01-07T09:31:07Z","version":3,"b":1}`)
	var selectors []Selector
	for _, text := range []string{"body:/payment", "body:/amount", "body:/version"} {
		s, err := Parse(text)
		if err != nil {
			b.Fatal(err)
		}
		selectors = append(selectors, s)
	}
	room := new(reading.Room)
	if _, err := room.Body(body); err != nil {
		b.Fatal(err)
	}
	for name, m := range map[string]*semel.Message{"parsed": {Body: body}, "proven": {Body: body, Strict: room.Proof(body)}} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Select(m, selectors); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
