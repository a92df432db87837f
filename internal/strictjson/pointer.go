package strictjson

import (
	"fmt"
	"strconv"
	"strings"
)

// Pointer is a parsed JSON pointer (RFC 6901). The zero value points to the whole document.
type Pointer struct{ tokens []token }

// token is one part of a pointer.
type token struct {
	name string
	// prefix is the result of prefixOf for the name.
	prefix uint64
	// index is the index in an array that the token selects, or -1 if the token is no index.
	index int
}

// ParsePointer parses a JSON pointer. A pointer is empty, or consists of tokens that each begin with a slash. In a
// token, ~0 means ~ and ~1 means a slash.
func ParsePointer(s string) (Pointer, error) {
	if s == "" {
		return Pointer{}, nil
	}
	if s[0] != '/' {
		return Pointer{}, fmt.Errorf("a JSON pointer begins with a slash: /%s", s)
	}
	var tokens []token
	for part := range strings.SplitSeq(s[1:], "/") {
		bare := strings.NewReplacer("~0", "", "~1", "").Replace(part)
		if strings.Contains(bare, "~") {
			return Pointer{}, fmt.Errorf("in a JSON pointer ~ is written ~0 and a slash inside a name ~1")
		}
		name := strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
		tokens = append(tokens, token{name, prefixOf([]byte(name)), indexOf(name)})
	}
	return Pointer{tokens}, nil
}

// indexOf converts a token to an array index. If the token is not a number without leading zeros, indexOf returns -1.
func indexOf(name string) int {
	index, err := strconv.ParseUint(name, 10, 31)
	if err != nil || strconv.FormatUint(index, 10) != name {
		return -1
	}
	return int(index)
}
