package adoption

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// dialect contains the parts that depend on the database.
type dialect struct {
	ids, texts, times []string // types that columns may have
	source, now       string   // SQL of the source and of the time
	// id returns the SQL of an id in the type of its column.
	id func(c *Column) string
	// literal returns a text as an SQL literal.
	literal func(text string) string
}

// The maximum lengths in bytes of an id and of a source that fit into an index entry of PostgreSQL (2,704 bytes)
// together with a consumer's name, even if the values cannot be compressed.
const (
	longestOld       = 2000
	longestOldSource = 400
)

// Fit returns the id in the spelling in which the table returns the id. If the table cannot store the id or its source,
// Fit returns an error.
func (a *Adoption) Fit(source, id string) (string, error) {
	if c := a.source; c != nil {
		if err := c.holds(source, longestOldSource); err != nil {
			return "", fmt.Errorf("the source has %w", err)
		}
	}
	return a.id.fit(id)
}

// fit returns the id in the spelling in which the column returns the id.
func (c *Column) fit(id string) (string, error) {
	switch c.Kind {
	case "bytea":
		return id, short(id, longestOld)
	case "uuid":
		if !isUUID(id) {
			return "", fmt.Errorf("the id is no UUID, but column %s of the adopted table requires one", c.Name)
		}
		return strings.ToLower(id), nil
	case "bigint", "integer", "smallint":
		bits := map[string]int{"bigint": 64, "integer": 32, "smallint": 16}
		n, err := strconv.ParseInt(id, 10, bits[c.Kind])
		if err != nil || strconv.FormatInt(n, 10) != id {
			return "", fmt.Errorf("the id is no number of type %s, which column %s of the adopted table requires", c.Kind, c.Name)
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

// holds returns an error if the column, which has a text type, cannot store a text, or if the text has more bytes than
// the limit most.
func (c *Column) holds(text string, most int) error {
	if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		return fmt.Errorf("bytes that column %s of the adopted table cannot hold: invalid UTF-8, or a zero byte", c.Name)
	}
	if n := utf8.RuneCountInString(text); c.Length > 0 && n > c.Length {
		return fmt.Errorf("%d characters, but column %s of the adopted table holds %d", n, c.Name, c.Length)
	}
	return short(text, most)
}

func short(text string, most int) error {
	if len(text) > most {
		return fmt.Errorf("%d bytes, but the key of the adopted table is sure to hold only %d", len(text), most)
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

// postgresID returns the SQL that reverses sqlform.ID. The CASE expression prevents generated ids from being converted
// to the column's type.
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

// postgresLiteral returns a text as an SQL literal that does not depend on standard_conforming_strings.
func postgresLiteral(text string) string {
	text = strings.ReplaceAll(text, "'", "''")
	if strings.Contains(text, `\`) {
		return "E'" + strings.ReplaceAll(text, `\`, `\\`) + "'"
	}
	return "'" + text + "'"
}
