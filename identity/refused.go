package identity

import (
	"fmt"
	"strings"

	"github.com/semel-go/semel/internal/brokerheader"
	"github.com/semel-go/semel/internal/selectors"
)

const useInstead = "use what the producer set once for the message: an id header (header:ce-id), a field of the body (body:/id), or a business key of several fields"

// checkSelector returns an error if a selector must not be part of an identity, and nil if the selector may be part of
// one.
func checkSelector(s selectors.Selector) error {
	why := ""
	switch {
	case s.Coordinate():
		why = "a copy that is sent again, moved to another topic or restored has other coordinates, and another message may get the same"
	case s.Place() == selectors.PlaceTopic:
		why = "a copy that went through a retry or dead-letter topic has another topic"
	case s.Place() == selectors.PlaceTime, s.Place() == selectors.PlaceHeader && isAttribute(s.Argument(), "time"):
		why = "two messages can have one time, and a copy that is sent again may have another"
	case s.Place() == selectors.PlaceHeader && brokerheader.Set(s.Argument()):
		why = "the broker, its client or a tracer sets it anew for every delivery or attempt"
	default:
		return nil
	}
	return fmt.Errorf("%q cannot be an identity: %s; %s", s, why, useInstead)
}

// The reasons why selectors with well-known names cannot be part of an identity.
const (
	eachTry  = "its value changes with each attempt to send the message, so no copy would be recognised"
	sharedBy = "several messages share its value, and all but one of them would be dropped as duplicates"
)

// unfitNames contains selectors, in lower case, that normally cannot be part of an identity, with the reason.
// A producer may nevertheless set such a value once for each message; see Selected.Trusted.
var unfitNames = map[string]string{
	"header:x-attempt-id": eachTry, "header:x-retry-count": eachTry, "header:x-b3-traceid": eachTry, "header:x-amzn-trace-id": eachTry,
	"header:x-cloud-trace-context": eachTry, "header:delivery-tag": eachTry, "header:redelivered": eachTry,
	"header:jmstimestamp": sharedBy, "header:date": sharedBy, "body:/timestamp": sharedBy,
}

// Unfit returns the first selector, of id or source, whose well-known name shows that it cannot be part of an
// identity, and the reason. If there is no such selector, or if Trusted was called, Unfit returns empty
// texts.
func (s *Selected) Unfit() (selector, why string) {
	if s.trusted {
		return "", ""
	}
	for _, one := range append(s.ids[:len(s.ids):len(s.ids)], s.source) {
		if why := unfitNames[strings.TrimSuffix(strings.ToLower(one.String()), "?")]; why != "" {
			return one.String(), why
		}
	}
	return "", ""
}

// Trusted accepts selectors with well-known names that normally differ between copies of a message, or have
// the same value in several messages, such as header:x-attempt-id or header:date. Call Trusted if this
// producer sets these values once for each message. Coordinates of the broker are still rejected. Trusted
// changes s and returns s.
func (s *Selected) Trusted() *Selected {
	s.trusted = true
	return s
}

// KeyAlone reports whether the id consists of the routing key alone, apart from constants.
func (s *Selected) KeyAlone() bool {
	keys := 0
	for _, id := range s.ids {
		if id.Place() == selectors.PlaceKey {
			keys++
		} else if !id.Constant() {
			return false
		}
	}
	return keys > 0
}

// sharedByMany reports whether a selector finds a value that many messages have, such as the type.
func sharedByMany(s selectors.Selector) bool {
	switch s.Place() {
	case selectors.PlaceType, selectors.PlaceSource:
		return true
	case selectors.PlaceHeader:
		return isAttribute(s.Argument(), "type") || isAttribute(s.Argument(), "source") || isAttribute(s.Argument(), "specversion")
	}
	return false
}

// isAttribute reports whether a header contains this CloudEvents attribute. With Kafka the prefix is ce_ and
// not ce-.
func isAttribute(header, name string) bool {
	return strings.EqualFold(header, "ce-"+name) || strings.EqualFold(header, "ce_"+name)
}
