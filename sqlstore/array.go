package sqlstore

import (
	"encoding/hex"
	"strconv"
)

// arrays are the columns of tuples that stand one after the other, each as a
// PostgreSQL array in its text form, which every driver passes on as a string.
func arrays(width int, flat []any) []any {
	columns := make([]any, width)
	for c := range columns {
		text := []byte{'{'}
		for i := c; i < len(flat); i += width {
			if i > c {
				text = append(text, ',')
			}
			text = appendElement(text, flat[i])
		}
		columns[c] = string(append(text, '}'))
	}
	return columns
}

// appendElement appends a number, or bytes in hexadecimal form; nil is NULL.
func appendElement(text []byte, v any) []byte {
	switch v := v.(type) {
	case int64:
		return strconv.AppendInt(text, v, 10)
	case []byte:
		if v == nil {
			return append(text, "NULL"...)
		}
		text = append(text, `"\\x`...)
		text = hex.AppendEncode(text, v)
		return append(text, '"')
	default:
		panic("sqlstore: an array of something else")
	}
}
