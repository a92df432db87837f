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

// columns are lists of values, each as a PostgreSQL array in its text form.
func columns(of []any) []any {
	texts := make([]any, len(of))
	for c, column := range of {
		switch column := column.(type) {
		case []int64:
			texts[c] = array(column)
		case [][]byte:
			texts[c] = array(column)
		case []string:
			texts[c] = array(column)
		default:
			panic("sqlstore: a column of something else")
		}
	}
	return texts
}

func array[T any](values []T) string {
	text := []byte{'{'}
	for i, v := range values {
		if i > 0 {
			text = append(text, ',')
		}
		text = appendElement(text, v)
	}
	return string(append(text, '}'))
}

// appendElement appends a number, a text, or bytes in hexadecimal form, of which nil
// is NULL.
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
	case string:
		text = append(text, '"')
		for i := range len(v) {
			if v[i] == '"' || v[i] == '\\' {
				text = append(text, '\\')
			}
			text = append(text, v[i])
		}
		return append(text, '"')
	default:
		panic("sqlstore: an array of something else")
	}
}
