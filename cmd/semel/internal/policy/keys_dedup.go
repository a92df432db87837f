package policy

import (
	"fmt"

	"go.yaml.in/yaml/v4"
)

// The table of a consumer's adopted table.

func dedupShape() object[Dedup] {
	return object[Dedup]{fields: []field[Dedup]{
		key(meta{name: "table", required: true, doc: "The table, as `public.processed_messages`. It needs a unique key of exactly the id, and the columns for consumer and source if they are named."},
			word{what: "the name of a table"}, func(t *Dedup) *string { return &t.Table }),
		key(meta{name: "columns", required: true, doc: "Its columns, in the spelling of the catalogue."},
			dedupColumnsShape(), func(t *Dedup) *DedupColumns { return &t.Columns }),
		key(meta{name: "values", doc: "What further columns of a new row get, such as `{status: done}`; also the consumer's own, if it is not its name."},
			valuesShape{}, func(t *Dedup) *map[string]string { return &t.Values }),
	}}
}

func dedupColumnsShape() object[DedupColumns] {
	column := word{what: "the name of a column"}
	return object[DedupColumns]{fields: []field[DedupColumns]{
		key(meta{name: "id", required: true, doc: "The id: text, varchar, uuid, bytea, bigint, integer or smallint. A message whose id it cannot hold has no usable identity."},
			column, func(c *DedupColumns) *string { return &c.ID }),
		key(meta{name: "consumer", doc: "The consumer's name, as part of the key. Without it, one consumer alone may use the table."},
			column, func(c *DedupColumns) *string { return &c.Consumer }),
		key(meta{name: "source", doc: "The producer's name, as part of the key. Without it, `identity.source` is a constant or absent."},
			column, func(c *DedupColumns) *string { return &c.Source }),
		key(meta{name: "processed_at", doc: "The time, where it has no default."},
			column, func(c *DedupColumns) *string { return &c.ProcessedAt }),
	}}
}

// valuesShape is a mapping of columns to texts.
type valuesShape struct{ leaf }

func (s valuesShape) read(d *decoder, p place) (map[string]string, bool) {
	if p.value().Kind != yaml.MappingNode {
		d.wrongType(p, s.words())
		return nil, false
	}
	all := map[string]string{}
	ok := true
	for name, at := range d.entries(p) {
		d.note(at.place)
		if name == "" {
			d.faultKey(at, fmt.Sprintf("%q is no column", name), "name a column of the table")
			ok = false
		}
		text, good := d.text(&at.place, "a text")
		all[name], ok = text, ok && good
	}
	return all, ok
}

func (valuesShape) words() string { return "a mapping of columns to texts" }
