package sqlhandler

import (
	"encoding/json"
	"fmt"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/reasonname"
	"github.com/semel-go/semel/internal/selectors"
)

// Intent describes an intent that the policy declares for each message of a handler.
type Intent struct {
	// To, Purpose and Type have the same meaning as in semel.Intent.
	To, Purpose, Type string
	// Recipient and Key are selectors; empty if the policy sets none.
	Recipient, Key string
	// Body has the members of a JSON object. If Body is empty, the intent has the body of the message.
	Body []Param
}

// intent is an Intent with parsed selectors.
type intent struct {
	Intent
	// The field selectors has the selectors for Recipient and Key, if set, followed by the selectors of Body.
	// The field names has the name of each value.
	names     []string
	selectors []selectors.Selector
}

// compileIntent parses the selectors.
func compileIntent(n Intent) (intent, error) {
	ready := intent{Intent: n}
	for _, p := range append([]Param{{Name: "recipient", Selector: n.Recipient}, {Name: "key", Selector: n.Key}}, n.Body...) {
		if p.Selector == "" {
			p.Selector = "const:" // a missing selector counts as an empty constant
		}
		s, err := selectors.Parse(p.Selector)
		if err != nil {
			return ready, fmt.Errorf("%s: %w", p.Name, err)
		}
		ready.names, ready.selectors = append(ready.names, p.Name), append(ready.selectors, s)
	}
	return ready, nil
}

// HasIntents reports whether the handler writes intents.
func (h *Handler) HasIntents() bool { return len(h.intents) > 0 }

// Intents returns the intents that the handler writes for m. An error of Intents is permanent.
func (h *Handler) Intents(m *semel.Message) ([]semel.Intent, error) {
	all := make([]semel.Intent, len(h.intents))
	for i := range h.intents {
		one, err := h.intents[i].build(m)
		if err != nil {
			return nil, err
		}
		all[i] = one
	}
	return all, nil
}

func (n *intent) build(m *semel.Message) (semel.Intent, error) {
	made := semel.Intent{To: n.To, Purpose: n.Purpose, Type: n.Type, Body: m.Body}
	found, err := selectors.Append(nil, m, n.selectors)
	if err != nil {
		return made, unreadable(err)
	}
	for i, v := range found {
		if (v.IsMissing() || v.IsNull()) && !n.selectors[i].Optional() {
			return made, n.missing(i, v)
		}
	}
	made.Recipient, made.Key = plainText(found[0]), plainText(found[1])
	if len(n.Body) > 0 {
		made.Body = object(n.names[2:], found[2:])
	}
	return made, nil
}

// missing returns the error for a message in which value i is missing or null.
func (n *intent) missing(i int, v selectors.Value) error {
	how := "has no value"
	if v.IsNull() {
		how = "is null"
	}
	return &semel.HandlerError{Decision: semel.DecidePermanent, Reason: reasonname.MissingParameter,
		Err: fmt.Errorf("intent to %s for %s: %s: %s %s", n.To, n.Purpose, n.names[i], n.selectors[i], how)}
}

// plainText returns a value as text, or "" if the value is missing or null.
func plainText(v selectors.Value) string {
	switch {
	case v.IsMissing() || v.IsNull():
		return ""
	case v.Kind() == selectors.Bytes:
		return string(v.Bytes())
	}
	text, _ := asText(v, boundValue(v)).(string)
	return text
}

// object returns a JSON object with the values in order. From equal values, object always makes equal bytes.
func object(names []string, values []selectors.Value) []byte {
	out := []byte{'{'}
	for i, v := range values {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(append(out, quoteJSON(names[i])...), ':'), member(v)...)
	}
	return append(out, '}')
}

// member returns a value as JSON. The digits of numbers stay the same.
func member(v selectors.Value) []byte {
	switch v.Kind() {
	case selectors.Missing, selectors.Null:
		return []byte("null")
	case selectors.Bool:
		if v.Bool() {
			return []byte("true")
		}
		return []byte("false")
	case selectors.Number:
		return []byte(v.Number())
	case selectors.JSON:
		return []byte(v.Text())
	case selectors.Bytes:
		return quoteJSON(string(v.Bytes()))
	}
	return quoteJSON(v.Text())
}

// quoteJSON returns a text as a JSON string. Invalid UTF-8 becomes U+FFFD.
func quoteJSON(text string) []byte {
	out, _ := json.Marshal(text) // cannot fail for a string
	return out
}
