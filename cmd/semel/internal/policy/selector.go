package policy

import (
	"fmt"
	"strings"
)

// selector is a text that says where a value is found in a message.
func selector(check func(string) (reason, remedy string)) word {
	return word{what: "a selector", check: check}
}

// badSelector says what is wrong with a selector, and what to write.
func badSelector(text string) (reason, remedy string) {
	kind, rest, hasRest := strings.Cut(strings.TrimSuffix(text, "?"), ":")
	switch kind {
	case "header":
		if rest == "" {
			return "the header has no name", `write "header:NAME"`
		}
	case "body":
		if rest != "" && !strings.HasPrefix(rest, "/") {
			return "the JSON pointer does not begin with /", `write "body:/field" (RFC 6901)`
		}
	case "const":
		if !hasRest {
			return "the constant has no text", `write "const:TEXT"`
		}
	case "key", "topic", "type", "subject", "time", "id", "source", "partition", "offset":
		if hasRest {
			return kind + " takes nothing behind it", "write " + kind
		}
	default:
		return fmt.Sprintf("%q is no selector", kind), unknownSelector(kind)
	}
	return "", ""
}

func unknownSelector(kind string) string {
	if near := nearestWord(kind, strings.Fields("header body key topic type subject time id source const partition offset")); near != "" {
		return fmt.Sprintf("did you mean %s?", near)
	}
	return "write header:NAME, body:/pointer, key, topic, type, subject, time, id, source or const:TEXT"
}

// badIDSelector also refuses what is no identity.
func badIDSelector(text string) (reason, remedy string) {
	if reason, remedy := badSelector(text); reason != "" {
		return reason, remedy
	}
	switch kind, _, _ := strings.Cut(strings.TrimSuffix(text, "?"), ":"); kind {
	case "partition", "offset", "topic":
		return kind + " is a coordinate of the broker and no identity: a redelivery, a replay or a second publication has another",
			"use what the producer sets once for the message: header:NAME, id, or fields of the body"
	case "time":
		return "time is no identity: two messages may have the same, and a copy another",
			"use what the producer sets once for the message: header:NAME, id, or fields of the body"
	}
	if strings.HasSuffix(text, "?") {
		return "an identity cannot be optional", "remove the ?; on_bad_identity says what becomes of a message without it"
	}
	return "", ""
}

// badContentSelector also refuses what differs between copies of a message.
func badContentSelector(text string) (reason, remedy string) {
	switch text {
	case "partition", "offset", "partition?", "offset?":
		return "coordinates of the broker are no content: copies of one message differ in them", "name headers or fields of the body"
	}
	return badSelector(text)
}
