package sqlstore

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// adopting is what a dialect needs to mark in a table of the user's.
type adopting struct {
	ids, texts, times []string // types of columns
	source, now       string   // the source as the column has it; the time
	// id is the expression of an id as its column has it.
	id func(c *oldColumn) string
	// literal writes a text.
	literal func(text string) string
}

// The lengths in bytes of an id and a source that an index of PostgreSQL takes
// together, beside a consumer's name, however little they can be compressed: it
// holds 2,704.
const (
	longestOld       = 2000
	longestOldSource = 400
)

// FitIdentity implements contract.IdentityFitter.
func (s *Store) FitIdentity(source, id string) (string, error) {
	if s.adopted == nil {
		return id, nil
	}
	if c := s.adopted.source; c != nil {
		if err := c.holds(source, longestOldSource); err != nil {
			return "", fmt.Errorf("the source has %w", err)
		}
	}
	return s.adopted.id.fit(id)
}

// fit is the id in the one spelling that its column gives back.
func (c *oldColumn) fit(id string) (string, error) {
	switch c.kind {
	case "bytea":
		return id, short(id, longestOld)
	case "uuid":
		if !isUUID(id) {
			return "", fmt.Errorf("the id is no UUID, which column %s of the adopted table holds", c.name)
		}
		return strings.ToLower(id), nil
	case "bigint", "integer", "smallint":
		bits := map[string]int{"bigint": 64, "integer": 32, "smallint": 16}
		n, err := strconv.ParseInt(id, 10, bits[c.kind])
		if err != nil || strconv.FormatInt(n, 10) != id {
			return "", fmt.Errorf("the id is no number of type %s, which column %s of the adopted table holds", c.kind, c.name)
		}
		return id, nil
	}
	if err := c.holds(id, longestOld); err != nil {
		return "", fmt.Errorf("the id has %w", err)
	}
	return id, nil
}

func isUUID(id string) bool {
	if len(id) != 36 {
		return false
	}
	for i := range len(id) {
		hyphen := i == 8 || i == 13 || i == 18 || i == 23
		if hyphen != (id[i] == '-') || !hyphen && !strings.ContainsRune("0123456789abcdefABCDEF", rune(id[i])) {
			return false
		}
	}
	return true
}

// holds reports why a column of texts cannot hold this one, of at most so many
// bytes.
func (c *oldColumn) holds(text string, most int) error {
	if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		return fmt.Errorf("bytes that are no text for column %s of the adopted table: not UTF-8, or zero", c.name)
	}
	if n := utf8.RuneCountInString(text); c.length > 0 && n > c.length {
		return fmt.Errorf("%d characters, and column %s of the adopted table holds %d", n, c.name, c.length)
	}
	return short(text, most)
}

func short(text string, most int) error {
	if len(text) > most {
		return fmt.Errorf("%d bytes, more than the %d that the key of the adopted table surely holds", len(text), most)
	}
	return nil
}

func postgresAdopting() *adopting {
	return &adopting{
		ids:     []string{"text", "character varying", "uuid", "bytea", "bigint", "integer", "smallint"},
		texts:   []string{"text", "character varying"},
		times:   []string{"timestamp with time zone", "timestamp without time zone", "date"},
		source:  "convert_from(s.source, 'UTF8')",
		now:     "clock_timestamp()",
		id:      postgresAdoptedID,
		literal: postgresLiteral,
	}
}

// postgresAdoptedID undoes sqlform.ID in SQL. The CASE keeps ids that the
// engine made up from being read as what they are not.
func postgresAdoptedID(c *oldColumn) string {
	const uuid = "encode(substr(a.id, 2), 'hex')::uuid"
	bytes := "case get_byte(a.id, 0) when 0 then substr(a.id, 2) when 1 then convert_to(" + uuid + "::text, 'UTF8') else a.long_id end"
	value := "convert_from(" + bytes + ", 'UTF8')"
	switch c.kind {
	case "text", "character varying":
		value = "(" + value + ")" + c.collate
	case "bytea":
		value = bytes
	case "uuid":
		value = "case get_byte(a.id, 0) when 1 then " + uuid + " else " + value + "::uuid end"
	case "bigint", "integer", "smallint":
		value += "::" + c.kind
	}
	return "case when s.source <> convert_to('semel:surrogate', 'UTF8') then " + value + " end"
}

// postgresLiteral writes a text so that it means itself whatever
// standard_conforming_strings is.
func postgresLiteral(text string) string {
	text = strings.ReplaceAll(text, "'", "''")
	if strings.Contains(text, `\`) {
		return "E'" + strings.ReplaceAll(text, `\`, `\\`) + "'"
	}
	return "'" + text + "'"
}
