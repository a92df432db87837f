package pgxstore

import (
	"errors"
	"strings"
)

// errCopy: the server would wait for data, or send it, in the middle of the
// statements that are sent together, and nobody would know what became of them.
var errCopy = errors.New("COPY cannot be sent together with other statements: use a handler of pgx.Tx and its Conn().CopyFrom, or an insert of several rows")

// copies reports whether a statement is a COPY.
func copies(sql string) bool {
	const word = "copy"
	sql = uncommented(sql)
	return len(sql) > len(word) && strings.EqualFold(sql[:len(word)], word) && strings.ContainsRune(" \t\r\n\f\v(\"/-", rune(sql[len(word)]))
}

// uncommented is a statement without the blanks and comments before it.
func uncommented(sql string) string {
	for {
		sql = strings.TrimLeft(sql, " \t\r\n\f\v")
		end := ""
		switch {
		case strings.HasPrefix(sql, "--"):
			end = "\n"
		case strings.HasPrefix(sql, "/*"):
			end = "*/"
		default:
			return sql
		}
		_, rest, found := strings.Cut(sql[2:], end)
		if !found {
			return ""
		}
		sql = rest
	}
}
