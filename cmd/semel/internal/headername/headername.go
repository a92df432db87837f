// Package headername checks the names of HTTP headers.
package headername

import "strings"

// Valid reports whether name is a valid header name: a token (RFC 9110, section 5.6.2).
func Valid(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("!#$%&'*+-.^_`|~", r))
	})
}
