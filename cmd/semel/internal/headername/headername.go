// Package headername knows what may be the name of a header.
package headername

import "strings"

// Valid is RFC 9110's rule for names of headers, section 5.6.2: a token.
func Valid(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("!#$%&'*+-.^_`|~", r))
	})
}
