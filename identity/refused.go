package identity

import (
	"fmt"
	"strings"

	"github.com/semel-go/semel/internal/brokerheader"
	"github.com/semel-go/semel/internal/selectors"
)

const useInstead = "use what the producer set once for the message: an id header (header:ce-id), a field of the body (body:/id), or a business key of several fields"

// refusedAsIdentity says why a selector must not be part of an identity; nil
// if it may.
func refusedAsIdentity(s selectors.Selector) error {
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

// Why selectors with well-known names are no identity.
const (
	eachTry  = "it is new, or counted, with each try of one message, so that no copy would be recognised"
	sharedBy = "messages that come close together share it, and all but one of them would be dropped"
)

// unfitNames are the selectors that are no part of an identity, in lower case, and why. A
// producer may set one of them once for a message all the same: see Selected.Trusted.
var unfitNames = map[string]string{
	"header:x-attempt-id": eachTry, "header:x-retry-count": eachTry, "header:x-b3-traceid": eachTry, "header:x-amzn-trace-id": eachTry,
	"header:x-cloud-trace-context": eachTry, "header:delivery-tag": eachTry, "header:redelivered": eachTry,
	"header:jmstimestamp": sharedBy, "header:date": sharedBy, "body:/timestamp": sharedBy,
}

// Unfit returns the first selector, of id or source, whose name says that it is no part of
// an identity, and why; empty if there is none, or Trusted was called.
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

// Trusted accepts selectors whose well-known names say that copies of a message differ in
// them, or that messages share them, such as header:x-attempt-id or header:date: this
// producer sets them once for a message. Coordinates of the broker are refused all the same.
// It changes s and returns it.
func (s *Selected) Trusted() *Selected {
	s.trusted = true
	return s
}

// KeyAlone reports whether the routing key alone, beside constants, is the id.
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

// sharedByMany reports whether a selector finds what an event has in common
// with others of its kind.
func sharedByMany(s selectors.Selector) bool {
	switch s.Place() {
	case selectors.PlaceType, selectors.PlaceSource:
		return true
	case selectors.PlaceHeader:
		return isAttribute(s.Argument(), "type") || isAttribute(s.Argument(), "source") || isAttribute(s.Argument(), "specversion")
	}
	return false
}

// isAttribute reports whether a header is that of a CloudEvents attribute; on
// Kafka an underscore stands where elsewhere a hyphen does.
func isAttribute(header, name string) bool {
	return strings.EqualFold(header, "ce-"+name) || strings.EqualFold(header, "ce_"+name)
}
