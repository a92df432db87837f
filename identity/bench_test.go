package identity

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"os"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/bodies"
	"github.com/semel-go/semel/internal/reading"
	"github.com/semel-go/semel/internal/selectors"
	"github.com/semel-go/semel/internal/strictjson"
)

// BenchmarkBodies measures the time to read parts of a body and to read the whole body. For comparison, BenchmarkBodies
// measures the standard library with the same bytes.
func BenchmarkBodies(b *testing.B) {
	sets, missing, err := bodies.Sets(os.Getenv(bodies.Variable))
	if err != nil {
		b.Fatal(err)
	}
	for _, set := range sets {
		b.Run("body="+set.Name, func(b *testing.B) { benchBodies(b, set) })
	}
	if missing != nil {
		b.Run("body=webhooks-missing", func(b *testing.B) { b.Log(missing) })
	}
}

func benchBodies(b *testing.B, set bodies.Set) {
	bench := func(name string, read func(m *semel.Message) error) {
		messages := make([]*semel.Message, len(set.All))
		for i, body := range set.All {
			messages[i] = &semel.Message{Headers: semel.Headers{{Name: "id", Value: []byte("018f4e7a-0000-7000-8000-000000000001")}}, Body: body}
		}
		b.Run(name, func(b *testing.B) { benchReading(b, set, messages, read) })
	}
	bench("encoding-json-Valid", func(m *semel.Message) error {
		if !json.Valid(m.Body) {
			return errors.New("not valid")
		}
		return nil
	})
	bench("encoding-json-Unmarshal", func(m *semel.Message) error {
		var v any
		return json.Unmarshal(m.Body, &v)
	})
	bench("SHA-256", func(m *semel.Message) error { sum = sha256.Sum256(m.Body); return nil })
	var parser strictjson.Parser
	bench("parse", func(m *semel.Message) error { _, err := parser.Parse(m.Body); return err })
	fingerprint := FingerprintBody()
	bench("fingerprint", func(m *semel.Message) error { _, err := fingerprint.Fingerprint(m); return err })
	by := By("body:/id")
	if set.Name == "webhooks" { // the ids of webhooks are in a header
		by = By("header:id")
	}
	asked := parameters(b, "body:/action?", "body:/sender/login?", "body:/repository/full_name?")
	var room reading.Room
	var values [3]selectors.Value
	bench("identity-fingerprint-3-parameters", func(m *semel.Message) error { return delivered(&room, by, asked, values[:0], m) })
}

// sum receives the hash, so that the compiler does not remove the computation.
var sum [sha256.Size]byte

func benchReading(b *testing.B, set bodies.Set, messages []*semel.Message, read func(m *semel.Message) error) {
	b.SetBytes(set.Mean())
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		if err := read(messages[n%len(messages)]); err != nil {
			b.Fatal(err)
		}
		n++
	}
}

func parameters(b testing.TB, texts ...string) (all []selectors.Selector) {
	for _, text := range texts {
		s, err := selectors.Parse(text)
		if err != nil {
			b.Fatal(err)
		}
		all = append(all, s)
	}
	return all
}

// delivered reads all values that the engine and a handler need from the body of a delivery: the identity,
// the fingerprint, and the values of the parameters.
func delivered(room *reading.Room, by *Selected, parameters []selectors.Selector, values []selectors.Value, m *semel.Message) error {
	room.Begin()
	if _, _, err := by.FindIn(room, m); err != nil {
		return err
	}
	if _, err := (bodyFingerprint{}).FingerprintIn(room, m); err != nil {
		return err
	}
	m.Strict = room.Proof(m.Body)
	_, err := selectors.Append(values, m, parameters)
	return err
}
