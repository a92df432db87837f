package httpkey

import (
	"fmt"
	"net/http"
	"strings"
)

// Header is the name of the header, from the IETF draft "The Idempotency-Key HTTP Header Field"
// (draft-ietf-httpapi-idempotency-key-header).
const Header = "Idempotency-Key"

// keyOf returns the key of a request, or an empty string if the request has no key. The header is an item of
// RFC 9651 whose value is a string (section 3.3.3). Parameters are rejected, because the draft defines none,
// and because a part of a key could be the key of another request.
func (c *Config) keyOf(h http.Header) (string, error) {
	lines := h.Values(Header)
	switch {
	case len(lines) == 0:
		return "", nil
	case len(lines) > 1:
		return "", fmt.Errorf("the request has %d %s headers; send one", len(lines), Header)
	}
	text := strings.Trim(lines[0], " \t")
	key, err := "", error(nil)
	switch {
	case strings.HasPrefix(text, `"`):
		key, err = parseQuoted(text)
	case c.Quoted:
		err = fmt.Errorf(`the %s header is not a string in double quotes; send it as "8e03978e-40d5"`, Header)
	default:
		key, err = parseUnquoted(text)
	}
	switch {
	case err != nil:
		return "", err
	case key == "":
		return "", fmt.Errorf("the %s header is empty; send a new key with each new request", Header)
	case len(key) > c.MaxKey:
		return "", fmt.Errorf("the %s header has a key of %d bytes; at most %d are allowed", Header, len(key), c.MaxKey)
	}
	return key, nil
}

// parseQuoted parses a string of RFC 9651: printable ASCII in which only a quote and a backslash are escaped.
func parseQuoted(text string) (string, error) {
	var key strings.Builder
	for i := 1; i < len(text); i++ {
		switch b := text[i]; {
		case b == '"' && i == len(text)-1:
			return key.String(), nil
		case b == '"':
			return "", fmt.Errorf("the %s header continues after its closing quote; send one string, without parameters", Header)
		case b == '\\':
			if i++; i == len(text) || text[i] != '"' && text[i] != '\\' {
				return "", fmt.Errorf(`the %s header has a backslash before a character other than " or \`, Header)
			}
			key.WriteByte(text[i])
		case b < ' ' || b > '~':
			return "", fmt.Errorf("the %s header has a byte that is not printable ASCII", Header)
		default:
			key.WriteByte(b)
		}
	}
	return "", fmt.Errorf("the %s header has no closing quote", Header)
}

// parseUnquoted parses a key without quotes.
func parseUnquoted(text string) (string, error) {
	for i := range len(text) {
		b := text[i]
		letter := 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' || '0' <= b && b <= '9'
		if !letter && !strings.ContainsRune("._~:/+=@-", rune(b)) {
			return "", fmt.Errorf("the %s header has a character that a key without quotes may not have; put the key in double quotes", Header)
		}
	}
	return text, nil
}
