package pgproxy

import "strings"

// splitStatements splits a text at semicolons outside of quotes and comments, as the server splits a Query.
// Comments become a space. Empty statements are left out, because the server does not reply to them.
func splitStatements(sql string) []string {
	var all []string
	var b strings.Builder
	end := func() {
		if s := strings.TrimSpace(b.String()); s != "" {
			all = append(all, s)
		}
		b.Reset()
	}
	for sql != "" {
		n := token(sql)
		switch {
		case sql[0] == ';':
			end()
		case isComment(sql):
			b.WriteByte(' ')
		default:
			b.WriteString(sql[:n])
		}
		sql = sql[n:]
	}
	end()
	return all
}

func isComment(sql string) bool {
	return strings.HasPrefix(sql, "--") || strings.HasPrefix(sql, "/*")
}

// token returns the number of bytes of the first token of sql: a comment, a quoted text, or one
// byte.
func token(sql string) int {
	switch {
	case strings.HasPrefix(sql, "--"):
		return upTo(sql, 2, "\n")
	case strings.HasPrefix(sql, "/*"):
		return blockComment(sql)
	case sql[0] == '\'' || sql[0] == '"':
		return upTo(sql, 1, sql[:1])
	case (sql[0] == 'e' || sql[0] == 'E') && strings.HasPrefix(sql[1:], "'"):
		return escapedQuoteLength(sql)
	case sql[0] == '$':
		return dollar(sql)
	case isLetter(sql[0]):
		return word(sql)
	}
	return 1
}

// upTo searches the parameter mark in sql, beginning at position start. The result is the position after mark, or the
// length of sql if mark does not occur.
func upTo(sql string, start int, mark string) int {
	i := strings.Index(sql[start:], mark)
	if i < 0 {
		return len(sql)
	}
	return start + i + len(mark)
}

// blockComment returns the length of a block comment. Block comments can be nested.
func blockComment(sql string) int {
	depth := 0
	for i := 0; i+1 < len(sql); i++ {
		switch sql[i : i+2] {
		case "/*":
			depth++
			i++
		case "*/":
			depth--
			i++
			if depth == 0 {
				return i + 1
			}
		}
	}
	return len(sql)
}

// escapedQuoteLength returns the length of a quote E'…'. In a quote E'…', a backslash escapes the next byte.
func escapedQuoteLength(sql string) int {
	for i := 2; i < len(sql); i++ {
		switch sql[i] {
		case '\\':
			i++
		case '\'':
			return i + 1
		}
	}
	return len(sql)
}

// dollar returns the length of a quote $tag$…$tag$, or 1 if the text is no such quote, for example $1.
func dollar(sql string) int {
	i := 1
	for i < len(sql) && (isLetter(sql[i]) || i > 1 && isDigit(sql[i])) {
		i++
	}
	if i == len(sql) || sql[i] != '$' {
		return 1
	}
	return upTo(sql, i+1, sql[:i+1])
}

// word returns the length of a name. A dollar sign or an E inside a name does not start a quote.
func word(sql string) int {
	i := 1
	for i < len(sql) && (isLetter(sql[i]) || isDigit(sql[i]) || sql[i] == '$') {
		i++
	}
	return i
}

func isLetter(c byte) bool {
	return c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c >= 0x80
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
