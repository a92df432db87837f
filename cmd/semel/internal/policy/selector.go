package policy

import (
	"fmt"
	"strings"

	"github.com/semel-go/semel/cmd/semel/internal/policy/shape"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/internal/selectors"
)

// selectorPattern is a regular expression for selectors, for use in editors.
const selectorPattern = `^((key|topic|type|subject|time|id|source|partition|offset)\??|header:.+|body:(/.*)?\??|const:.*)$`

// selector describes a text that selects a value of a message. If the function check is not nil, check
// returns why a valid selector is not allowed as the value of the key.
func selector(check func(text string, s selectors.Selector) error) shape.Word {
	return shape.Word{What: "a selector", Pattern: selectorPattern, Check: func(text string) (reason, remedy string) {
		s, err := selectors.Parse(text)
		if err == nil && check != nil {
			err = check(text, s)
		}
		return split(err, "see docs/reference/policy for the selectors")
	}}
}

// idSelector rejects a selector that cannot be part of an identity. Other rules check constants and shared
// values, because the check of constants and shared values needs the complete list of selectors.
func idSelector(text string, s selectors.Selector) error {
	if s.Constant() {
		return nil
	}
	return identity.By(text, "id").Trusted().Validate() // the key trusted is read elsewhere, so Trusted accepts every name here
}

// sourceSelector rejects a selector that cannot be the name of a producer.
func sourceSelector(text string, _ selectors.Selector) error {
	return identity.By("id").From(text).Trusted().Validate()
}

// typeSelector rejects a selector whose value differs in each message.
func typeSelector(text string, s selectors.Selector) error {
	if s.Unique() {
		return fmt.Errorf("%q cannot be a type: its value differs in each message; select the type, such as header:event-type or body:/type", text)
	}
	return nil
}

// streamSelector rejects a selector that cannot name a stream.
func streamSelector(text string, s selectors.Selector) error {
	if s.Coordinate() || s.Optional() {
		return fmt.Errorf("%q cannot be a stream; select the object whose versions the producer counts, such as body:/order", text)
	}
	return nil
}

// numberSelector rejects a selector that cannot be a version.
func numberSelector(text string, s selectors.Selector) error {
	switch {
	case s.Constant():
		return fmt.Errorf("%q cannot be a version: it is the same in all messages; select a number that the producer counts for each stream, such as body:/version", text)
	case s.Coordinate():
		return fmt.Errorf("%q cannot be a version: the broker sets it, and it has gaps; select a number that the producer counts for each stream, such as body:/version", text)
	case s.Time():
		return fmt.Errorf("%q cannot be a version: the value after a time is unknown; select a number that the producer counts for each stream, such as body:/version", text)
	case s.Optional():
		return fmt.Errorf("%q: the key missing decides about messages without a version; remove the question mark, and write missing: park", text)
	}
	return nil
}

// contentSelector rejects a selector whose value differs between deliveries of one message.
func contentSelector(text string, s selectors.Selector) error {
	if s.Constant() {
		return nil
	}
	return identity.FingerprintOf(text).Validate()
}

// split cuts an error of the library at the semicolon into reason and remedy.
func split(err error, otherwise string) (reason, remedy string) {
	if err == nil {
		return "", ""
	}
	reason, remedy, found := strings.Cut(err.Error(), "; ")
	if !found {
		remedy = otherwise
	}
	return reason, remedy
}
