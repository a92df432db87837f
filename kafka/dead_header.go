package kafka

import "strings"

// A record that is a dead letter itself, and becomes one of another consumer, says both:
// what the first letter said stands under other names, so that nothing of the record is
// lost. An identity may be made of it, as of the place of a record that has no other.

// mostWas is how many letters back a letter says what it was: the headers of two consumers
// that read each other's dead letters must have an end.
const mostWas = 4

const ourPrefix = "semel-"

// ours reports whether a header is one of those a dead letter gets.
func ours(name string) bool {
	switch name {
	case HeaderReason, HeaderError, HeaderAttempts, HeaderConsumer, HeaderTopic, HeaderPartition, HeaderOffset, HeaderTime, HeaderLength:
		return true
	}
	return false
}

// ofLetter reports whether a header says something of a letter, and how many letters back:
// 0 is the newest.
func ofLetter(name string) (back int, of bool) {
	for ; strings.HasPrefix(name, HeaderWas); back++ {
		name = ourPrefix + strings.TrimPrefix(name, HeaderWas)
	}
	return back, ours(name)
}

// inLetter is the name that a header of a record has in its letter; false if it has none.
func inLetter(name string) (string, bool) {
	switch back, of := ofLetter(name); {
	case !of:
		return name, true
	case back == mostWas:
		return "", false
	}
	return HeaderWas + strings.TrimPrefix(name, ourPrefix), true
}

// outOfLetter is the name that a header of a letter has in its record; false if it came with
// the letter.
func outOfLetter(name string) (string, bool) {
	switch back, of := ofLetter(name); {
	case !of:
		return name, true
	case back == 0:
		return "", false
	}
	return ourPrefix + strings.TrimPrefix(name, HeaderWas), true
}
