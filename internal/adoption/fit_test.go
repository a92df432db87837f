package adoption

import (
	"strings"
	"testing"
)

func TestAnIdFitsItsColumn(t *testing.T) {
	const id = "018f3a2b-0000-7000-8000-00000000000a"
	for _, c := range []struct {
		kind   string
		length int
		id     string
		want   string // empty if the id is rejected
	}{
		{"text", 0, "any ä", "any ä"},
		{"text", 0, "\xff", ""},
		{"text", 0, "a\x00b", ""},
		{"text", 0, strings.Repeat("x", 2000), strings.Repeat("x", 2000)},
		{"text", 0, strings.Repeat("x", 2001), ""},
		{"character varying", 3, "äöü", "äöü"},
		{"character varying", 3, "abcd", ""},
		{"uuid", 0, id, id},
		{"uuid", 0, strings.ToUpper(id), id},
		{"uuid", 0, strings.ReplaceAll(id, "-", ""), ""},
		{"uuid", 0, strings.Replace(id, "a", "g", 1), ""},
		{"uuid", 0, strings.Replace(id, "-", "0", 1), ""},
		{"bigint", 0, "-9223372036854775808", "-9223372036854775808"},
		{"bigint", 0, "9223372036854775808", ""},
		{"bigint", 0, "007", ""},
		{"bigint", 0, "+7", ""},
		{"integer", 0, "2147483648", ""},
		{"smallint", 0, "-32768", "-32768"},
		{"smallint", 0, "32768", ""},
		{"bytea", 0, "\xff\x00", "\xff\x00"},
		{"bytea", 0, strings.Repeat("x", 2001), ""},
	} {
		t.Run(c.kind, func(t *testing.T) {
			column := Column{Name: "id", Kind: c.kind, Length: c.length}
			if got, err := column.fit(c.id); got != c.want && err == nil || (err == nil) != (c.want != "") {
				t.Errorf("%.40q becomes %.40q, %v, want %.40q", c.id, got, err, c.want)
			}
		})
	}
}

func TestATextInAStatementMeansItself(t *testing.T) {
	for text, want := range map[string]string{"done": "'done'", "it's": "'it''s'", `a\'b`: `E'a\\''b'`} {
		if got := postgresLiteral(text); got != want {
			t.Errorf("%s is written %s, want %s", text, got, want)
		}
	}
}

func TestASourceFitsItsColumn(t *testing.T) {
	a := &Adoption{id: &Column{Kind: "text"}, source: &Column{Kind: "text"}}
	for source, fits := range map[string]bool{"": true, "shop": true, strings.Repeat("x", 400): true, strings.Repeat("x", 401): false, "\xff": false} {
		if _, err := a.Fit(source, "1"); (err == nil) != fits {
			t.Errorf("the source %.40q: %v", source, err)
		}
	}
}
