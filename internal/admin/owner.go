package admin

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
)

// handlersOf begins the owner of a name that is known by the types of its handlers.
const handlersOf = "the handlers of "

// mostTypes is the maximum length of the types in an owner, in bytes. Longer lists end with a hash.
const mostTypes = 500

// HandlersOf returns the owner of a consumer's name that is known by the types of its handlers; "" without
// types.
func HandlersOf(types []string) string {
	if len(types) == 0 {
		return ""
	}
	types = slices.Sorted(slices.Values(types))
	text := handlersOf + strings.Join(types, ", ")
	if sum := sha256.Sum256([]byte(text)); len(text) > mostTypes {
		text = fmt.Sprintf("%s… (sha256 %x)", strings.ToValidUTF8(text[:mostTypes], ""), sum[:8])
	}
	return text
}

// Grown reports whether the second owner has all handler types of the first owner and more types, so that both owners
// are the same consumer. Grown is false if one of the lists is too long to be recorded in full.
func Grown(was, owner string) bool {
	before, after := typesOf(was), typesOf(owner)
	gone := func(t string) bool { return !slices.Contains(after, t) }
	return len(before) > 0 && len(after) > len(before) && !slices.ContainsFunc(before, gone)
}

// typesOf returns the types of an owner. The result is nil if HandlersOf did not return the owner, or if the owner does
// not contain all types.
func typesOf(owner string) []string {
	text, is := strings.CutPrefix(owner, handlersOf)
	if !is || strings.Contains(text, "… (sha256 ") {
		return nil
	}
	return strings.Split(text, ", ")
}
