package adoption

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// dialect is what a database needs to mark in a table of the user's.
type dialect struct {
	ids, texts, times []string // types of columns
	source, now       string   // the source as the column has it; the time
	// id is the expression of an id as its column has it.
	id func(c *Column) string
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

// Fit is the id in the one spelling that the table gives back; an error if the
// table cannot hold the id or its source.
func (a *Adoption) Fit(source, id string) (string, error) {
	if c := a.source; c != nil {
		if err := c.holds(source, longestOldSource); err != nil {
			return "", fmt.Errorf("the source has %w", err)
		}
	}
	return a.id.fit(id)
}

// fit is the id in the one spelling that its column gives back.
func (c *Column) fit(id string) (string, error) {
	switch c.Kind {
	case "bytea":
		return id, short(id, longestOld)
	case "uuid":
		if !isUUID(id) {
			return "", fmt.Errorf("the id is no UUID, which column %s of the adopted table holds", c.Name)
		}
		return strings.ToLower(id), nil
	case "bigint", "integer", "smallint":
		bits := map[string]int{"bigint": 64, "integer": 32, "smallint": 16}
		n, err := strconv.ParseInt(id, 10, bits[c.Kind])
		if err != nil || strconv.FormatInt(n, 10) != id {
			return "", fmt.Errorf("the id is no number of type %s, which column %s of the adopted table holds", c.Kind, c.Name)
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
func (c *Column) holds(text string, most int) error {
	if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		return fmt.Errorf("bytes that are no text for column %s of the adopted table: not UTF-8, or zero", c.Name)
	}
	if n := utf8.RuneCountInString(text); c.Length > 0 && n > c.Length {
		return fmt.Errorf("%d characters, and column %s of the adopted table holds %d", n, c.Name, c.Length)
	}
	return short(text, most)
}

func short(text string, most int) error {
	if len(text) > most {
		return fmt.Errorf("%d bytes, more than the %d that the key of the adopted table surely holds", len(text), most)
	}
	return nil
}

func postgres() *dialect {
	return &dialect{
		ids:     []string{"text", "character varying", "uuid", "bytea", "bigint", "integer", "smallint"},
		texts:   []string{"text", "character varying"},
		times:   []string{"timestamp with time zone", "timestamp without time zone", "date"},
		source:  "pg_catalog.convert_from(s.source, 'UTF8')",
		now:     "pg_catalog.clock_timestamp()",
		id:      postgresID,
		literal: postgresLiteral,
	}
}

// postgresID undoes sqlform.ID in SQL. The CASE keeps ids that the
// engine made up from being read as what they are not.
func postgresID(c *Column) string {
	const uuid = "pg_catalog.encode(pg_catalog.substr(a.id, 2), 'hex')::uuid"
	bytes := "case pg_catalog.get_byte(a.id, 0) when 0 then pg_catalog.substr(a.id, 2) when 1 then pg_catalog.convert_to(" + uuid + "::text, 'UTF8') else a.long_id end"
	value := "pg_catalog.convert_from(" + bytes + ", 'UTF8')"
	switch c.Kind {
	case "text", "character varying":
		value = "(" + value + ")" + c.Collate
	case "bytea":
		value = bytes
	case "uuid":
		value = "case pg_catalog.get_byte(a.id, 0) when 1 then " + uuid + " else " + value + "::uuid end"
	case "bigint", "integer", "smallint":
		value += "::" + c.Kind
	}
	return "case when s.source <> pg_catalog.convert_to('semel:surrogate', 'UTF8') then " + value + " end"
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
