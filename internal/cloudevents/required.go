// Package cloudevents knows what CloudEvents 1.0 requires of an event besides
// what identifies it (https://github.com/cloudevents/spec, version 1.0.2,
// "Required Attributes" and "Optional Attributes").
package cloudevents

import (
	"strings"
	"time"
)

// Version is the only specversion that is read.
const Version = "1.0"

// Fault says in which way an event is none of version 1.0; empty if it is one.
// It carries nothing of the values. attribute returns the text of an attribute
// and whether it is set.
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

// Time reads a timestamp as RFC 3339 writes it: T and Z may be in lower case,
// and a minute may have a second 60, which becomes the last moment before it.
func Time(text string) (time.Time, bool) {
	text = strings.ToUpper(text)
	const second = len("2006-01-02T15:04:")
	if len(text) > second+2 && text[second:second+2] == "60" {
		text = text[:second] + "59" + text[second+2:]
	}
	if len(text) < second+3 || text[second-4] != ':' || text[second+2] == ',' || !offset(text) {
		return time.Time{}, false // which package time would take
	}
	var t time.Time
	if err := t.UnmarshalText([]byte(text)); err != nil { // stricter than Parse
		return time.Time{}, false
	}
	return t, true
}

// offset reports whether text ends in Z, or in an offset as it may be: at most
// 23:59, of which package time takes more.
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
