package identity

import (
	"fmt"
	"strings"

	"github.com/semel-go/semel/internal/brokerheader"
)

const useInstead = "use what the producer set once for the message: an id header (header:ce-id), a field of the body (body:/id), or a business key of several fields"

// refusedAsIdentity says why a selector must not be part of an identity; nil
// if it may.
func refusedAsIdentity(s Selector) error {
	why := ""
	switch {
	case s.Coordinate():
		why = "a copy that is sent again, moved to another topic or restored has other coordinates, and another message may get the same"
	case s.place == placeTopic:
		why = "a copy that went through a retry or dead-letter topic has another topic"
	case s.place == placeTime, s.place == placeHeader && isAttribute(s.argument, "time"):
		why = "two messages can have one time, and a copy that is sent again may have another"
	case s.place == placeHeader && brokerheader.Set(s.argument):
		why = "the broker, its client or a tracer sets it anew for every delivery or attempt"
	default:
		return nil
	}
	return fmt.Errorf("%q cannot be an identity: %s; %s", s, why, useInstead)
}

// sharedByMany reports whether a selector finds what an event has in common
// with others of its kind.
func sharedByMany(s Selector) bool {
	switch s.place {
	case placeType, placeSource:
		return true
	case placeHeader:
		return isAttribute(s.argument, "type") || isAttribute(s.argument, "source") || isAttribute(s.argument, "specversion")
	}
	return false
}

// isAttribute reports whether a header is that of a CloudEvents attribute; on
// Kafka an underscore stands where elsewhere a hyphen does.
func isAttribute(header, name string) bool {
	return strings.EqualFold(header, "ce-"+name) || strings.EqualFold(header, "ce_"+name)
}
