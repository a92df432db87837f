// Package cloudevents checks the attributes of an event that CloudEvents 1.0 requires, except id and source
// (https://github.com/cloudevents/spec, version 1.0.2, "Required Attributes" and "Optional Attributes").
package cloudevents

import (
	"strings"
	"time"
)

// Version is the only supported specversion.
const Version = "1.0"

// Fault returns why an event violates version 1.0. If the event is valid, Fault returns an empty text. The text
// contains no values of the event. The function attribute returns the text of an attribute, and whether the attribute
// is set.
func Fault(attribute func(name string) (text string, set bool)) string {
	version, set := attribute("specversion")
	switch {
	case !set:
		return "the event has no specversion, which CloudEvents requires; set it to " + Version
	case version != Version:
		return "the event's specversion is not " + Version + ", the only one that is read"
	}
	switch kind, set := attribute("type"); {
	case !set:
		return "the event has no type, which CloudEvents requires; set it"
	case kind == "":
		return "the event's type is empty, and CloudEvents requires one; set it"
	}
	if when, set := attribute("time"); set {
		if _, ok := Time(when); !ok {
			return "the event's time is no timestamp as RFC 3339 writes it, such as 2006-01-02T15:04:05Z"
		}
	}
	return ""
}

// Time parses a timestamp in the format of RFC 3339. T and Z may be in lower case. A leap second (:60) is
// converted to the last moment before it.
func Time(text string) (time.Time, bool) {
	text = strings.ToUpper(text)
	const second = len("2006-01-02T15:04:")
	if len(text) > second+2 && text[second:second+2] == "60" {
		text = text[:second] + "59" + text[second+2:]
	}
	if len(text) < second+3 || text[second-4] != ':' || text[second+2] == ',' || !offset(text) {
		return time.Time{}, false // package time would accept this text
	}
	var t time.Time
	if err := t.UnmarshalText([]byte(text)); err != nil { // UnmarshalText is stricter than Parse
		return time.Time{}, false
	}
	return t, true
}

// offset reports whether text ends in Z or in a valid offset of at most 23:59. Package time also accepts
// larger offsets.
func offset(text string) bool {
	if strings.HasSuffix(text, "Z") {
		return true
	}
	const form = "07:00"
	if len(text) < len(form) {
		return false
	}
	hours, minutes, _ := strings.Cut(text[len(text)-len(form):], ":")
	return hours < "24" && minutes < "60"
}
