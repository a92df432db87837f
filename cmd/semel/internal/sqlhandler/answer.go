package sqlhandler

import (
	"errors"
	"fmt"
	"slices"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/reasonname"
	"github.com/semel-go/semel/internal/strictjson"
)

// MostEffects is the maximum number of effects in a response, and also of intents.
const MostEffects = 1000

// ParamType is the required type of a parameter.
type ParamType string

// The types of parameters. A number may also be a string that contains a number, because many languages
// cannot write long JSON numbers.
const (
	// Text is a string.
	Text ParamType = "text"
	// Integer is a 64-bit integer.
	Integer ParamType = "integer"
	// Decimal is a number of any length, without rounding.
	Decimal ParamType = "decimal"
	// Boolean is true or false.
	Boolean ParamType = "boolean"
	// Timestamp is a string with an RFC 3339 time and a time zone. The database receives the time in UTC.
	Timestamp ParamType = "timestamp"
	// JSON is any value. The database receives the value as JSON text.
	JSON ParamType = "json"
)

// ParamTypes returns all types.
func ParamTypes() []ParamType { return []ParamType{Text, Integer, Decimal, Boolean, Timestamp, JSON} }

// Read parses the response to message m. The response is a JSON object with at least one of three members:
// {"effects": [{"statement": NAME, "params": {…}}, …], "intents": [{"to": SENDER, "purpose": …}, …],
// "result": VALUE}.
//
// If the response is invalid, Read returns a permanent error, and the message ends as the policy says. The
// error does not contain any part of the response.
func (e *Effects) Read(answer []byte, m *semel.Message) (*Answer, error) {
	all, err := e.read(answer, m)
	if err != nil {
		return nil, &semel.HandlerError{Decision: semel.DecidePermanent, Reason: reasonname.BadEffects,
			Err: fmt.Errorf("the effects in the response are invalid and none was applied: %w", err)}
	}
	return all, nil
}

func (e *Effects) read(answer []byte, m *semel.Message) (*Answer, error) {
	document, err := strictjson.Parse(answer)
	if err != nil {
		return nil, fmt.Errorf("it is not strict JSON: %w", err)
	}
	list, has := document.Root().Member("effects")
	intents, causes := document.Root().Member("intents")
	result, made := document.Root().Member("result")
	switch {
	case has && list.Kind() != strictjson.Array || !has && !causes && !made:
		return nil, errors.New(`it is not an object with a list "effects" or "intents", or with a "result"`)
	case !hasOnly(document.Root(), "effects", "intents", "result"):
		return nil, errors.New(`it has a member other than "effects", "intents" and "result", which this release does not know`)
	case made && len(result.Raw()) > admin.MaxResult:
		return nil, fmt.Errorf("its result has %d bytes, but at most %d are allowed", len(result.Raw()), admin.MaxResult)
	}
	var all Answer
	if has {
		all.effects, err = e.effects(list)
	}
	if causes && err == nil {
		all.Intents, err = e.intents(intents, m)
	}
	if made {
		all.Result = slices.Clone(result.Raw())
	}
	return &all, err
}

func (e *Effects) effects(list strictjson.Value) ([]Effect, error) {
	var all []Effect
	for item := range list.Elements() {
		if len(all) == MostEffects {
			return nil, fmt.Errorf("it has more than %d effects", MostEffects)
		}
		one, err := e.effect(item)
		if err != nil {
			return nil, fmt.Errorf("effect %d: %w", len(all)+1, err)
		}
		all = append(all, one)
	}
	return all, nil
}

// hasOnly reports whether an object has no members other than names.
func hasOnly(v strictjson.Value, names ...string) bool {
	for name := range v.Members() {
		if !slices.Contains(names, name) {
			return false
		}
	}
	return true
}

func (e *Effects) effect(item strictjson.Value) (Effect, error) {
	name, has := item.Member("statement")
	if !has || name.Kind() != strictjson.String || !hasOnly(item, "statement", "params") {
		return Effect{}, errors.New(`it is not an object with only a text "statement" and "params"`)
	}
	of := e.named[string(name.Text())]
	if of == nil {
		return Effect{}, errors.New("the policy declares no statement with this name")
	}
	values, err := of.read(item, e.sendsText)
	if err != nil {
		return Effect{}, fmt.Errorf("statement %s: %w", of.name, err)
	}
	return Effect{of, values}, nil
}

// read returns the values of the statement's parameters from one effect of a response.
func (n *namedStatement) read(item strictjson.Value, texts bool) ([]any, error) {
	params, given := item.Member("params")
	if given && params.Kind() != strictjson.Object {
		return nil, errors.New(`"params" is not an object`)
	}
	if given && !hasOnly(params, n.names...) {
		return nil, errors.New("it has a parameter that the policy does not declare")
	}
	values := make([]any, len(n.params))
	for i, p := range n.params {
		var v strictjson.Value
		has := false
		if given {
			v, has = params.Member(p.Name)
		}
		switch {
		case !has && p.Optional, has && p.Optional && v.Kind() == strictjson.Null:
			continue
		case !has:
			return nil, fmt.Errorf("parameter %s is missing", p.Name)
		}
		value, err := p.Type.value(fromResponse(v), texts)
		if err != nil {
			return nil, fmt.Errorf("parameter %s %w", p.Name, err)
		}
		values[i] = value
	}
	return values, nil
}
