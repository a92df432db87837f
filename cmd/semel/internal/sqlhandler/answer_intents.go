package sqlhandler

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/headername"
	"github.com/semel-go/semel/internal/strictjson"
)

// intents reads the intents of the response to m. An intent is {"to": SENDER, "purpose": …} with optional
// members.
func (e *Effects) intents(list strictjson.Value, m *semel.Message) ([]semel.Intent, error) {
	if list.Kind() != strictjson.Array {
		return nil, errors.New(`"intents" is not a list`)
	}
	var all []semel.Intent
	ids := map[[3]string]bool{}
	for item := range list.Elements() {
		if len(all) == MostEffects {
			return nil, fmt.Errorf("it has more than %d intents", MostEffects)
		}
		one, err := e.intent(item, m)
		if id := [3]string{one.To, one.Purpose, one.Recipient}; err == nil && ids[id] {
			err = errors.New("another intent has the same sender, purpose and recipient, so both would have the same id")
		} else {
			ids[id] = true
		}
		if err != nil {
			return nil, fmt.Errorf("intent %d: %w", len(all)+1, err)
		}
		all = append(all, one)
	}
	return all, nil
}

func (e *Effects) intent(item strictjson.Value, m *semel.Message) (semel.Intent, error) {
	if item.Kind() != strictjson.Object || !hasOnly(item, "to", "purpose", "type", "recipient", "key", "headers", "body", "body_base64") {
		return semel.Intent{}, errors.New("it is not an object with only the members of an intent: to, purpose, type, recipient, key, headers, body or body_base64")
	}
	var n semel.Intent
	for name, to := range map[string]*string{"to": &n.To, "purpose": &n.Purpose, "type": &n.Type, "recipient": &n.Recipient, "key": &n.Key} {
		v, given := item.Member(name)
		if given && v.Kind() != strictjson.String {
			return n, fmt.Errorf("its %q is not text", name)
		}
		if given {
			*to = string(v.Text())
		}
	}
	switch {
	case n.Purpose == "":
		return n, errors.New(`it has no "purpose"`)
	case !slices.Contains(e.senders, n.To):
		return n, errors.New("the policy does not allow this endpoint intents for this sender (handler.http.effects.intents)")
	}
	var err error
	if n.Headers, err = answeredHeaders(item); err == nil {
		n.Body, err = answeredBody(item, m)
	}
	return n, err
}

// answeredBody returns the body of an intent in a response. "body" is any JSON value and is returned
// unchanged. "body_base64" is decoded. If the response has neither member, answeredBody returns nil, which
// means the body of m.
func answeredBody(item strictjson.Value, m *semel.Message) ([]byte, error) {
	body, written := item.Member("body")
	encoded, bytes := item.Member("body_base64")
	switch {
	case written && bytes:
		return nil, errors.New(`it has both "body" and "body_base64"`)
	case written:
		return slices.Clone(body.Raw()), nil
	case !bytes:
		return m.Body, nil
	case encoded.Kind() != strictjson.String:
		return nil, errors.New(`its "body_base64" is not text`)
	}
	decoded, err := base64.StdEncoding.Strict().DecodeString(string(encoded.Text()))
	if err != nil {
		return nil, errors.New(`its "body_base64" is not valid base64`)
	}
	return decoded, nil
}

// answeredHeaders returns the headers of an intent in a response, sorted by name. Headers that Semel itself
// sets, and headers for event attributes, are rejected.
func answeredHeaders(item strictjson.Value) (all semel.Headers, err error) {
	list, given := item.Member("headers")
	if !given {
		return nil, nil
	}
	if list.Kind() != strictjson.Object {
		return nil, errors.New(`its "headers" is not an object`)
	}
	for name, v := range list.Members() {
		switch {
		case v.Kind() != strictjson.String:
			return nil, errors.New("one of its headers is not text")
		case !headername.Valid(name) || ofSemel(name):
			return nil, errors.New("one of its headers has an invalid name, or a name reserved for Semel (semel-…, ce-…, traceparent, tracestate)")
		}
		all = append(all, semel.Header{Name: name, Value: slices.Clone(v.Text())})
	}
	// Sort the headers, so that the same response always gives the same intent.
	slices.SortFunc(all, func(a, b semel.Header) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

func ofSemel(name string) bool {
	lower := strings.ToLower(name)
	return strings.HasPrefix(lower, "semel-") || strings.HasPrefix(lower, "ce-") || strings.HasPrefix(lower, "ce_") || lower == "traceparent" || lower == "tracestate"
}
