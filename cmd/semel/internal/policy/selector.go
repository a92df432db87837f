package policy

import (
	"fmt"
	"strings"

	"github.com/semel-go/semel/cmd/semel/internal/policy/shape"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/internal/selectors"
)

// selectorPattern is what an editor knows of selectors.
const selectorPattern = `^((key|topic|type|subject|time|id|source|partition|offset)\??|header:.+|body:(/.*)?\??|const:.*)$`

// selector is a text that says where a value is found in a message. check, if
// any, says whether it may stand here; every selector must also be one.
func selector(check func(text string, s selectors.Selector) error) shape.Word {
	return shape.Word{What: "a selector", Pattern: selectorPattern, Check: func(text string) (reason, remedy string) {
		s, err := selectors.Parse(text)
		if err == nil && check != nil {
			err = check(text, s)
		}
		return split(err, "see docs/reference/policy for the selectors")
	}}
}

// idSelector refuses what makes no identity. A constant, or what many messages
// share, by itself is a matter of the whole list.
func idSelector(text string, s selectors.Selector) error {
	if s.Constant() {
		return nil
	}
	return identity.By(text, "id").Trusted().Validate() // unknown here: trusted beside it
}

// sourceSelector refuses what is no name of a producer.
func sourceSelector(text string, _ selectors.Selector) error {
	return identity.By("id").From(text).Trusted().Validate()
}

// typeSelector refuses what differs from message to message.
func typeSelector(text string, s selectors.Selector) error {
	if s.Unique() {
		return fmt.Errorf("%q cannot be a type: it finds another value in each message; name the place of the type, as header:event-type or body:/type", text)
	}
	return nil
}

// streamSelector refuses what does not name what versions are counted for.
func streamSelector(text string, s selectors.Selector) error {
	if s.Coordinate() || s.Optional() {
		return fmt.Errorf("%q cannot name a stream, which is what messages are about, and which each names itself; write what the versions are counted for, as body:/order", text)
	}
	return nil
}

// numberSelector refuses what is no version.
func numberSelector(text string, s selectors.Selector) error {
	switch {
	case s.Constant():
		return fmt.Errorf("%q cannot be a version: it stands still; name what the producer counts for each stream, as body:/version", text)
	case s.Coordinate():
		return fmt.Errorf("%q cannot be a version: it is the broker's, and has gaps; name what the producer counts for each stream, as body:/version", text)
	case s.Time():
		return fmt.Errorf("%q cannot be a version: after a time nobody knows the next; name what the producer counts for each stream, as body:/version", text)
	case s.Optional():
		return fmt.Errorf("%q: what becomes of a message without a version is a key of its own; leave the question mark out, and write missing: park", text)
	}
	return nil
}

// contentSelector refuses what differs between copies of a message.
func contentSelector(text string, s selectors.Selector) error {
	if s.Constant() {
		return nil
	}
	return identity.FingerprintOf(text).Validate()
}

// split cuts the library's errors, which name the remedy behind a semicolon.
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
