package policy

import (
	"fmt"
)

// dedup judges an adopted table.
func (r rules) dedup(p *Policy) {
	c := r.consumer
	if c.Dedup == nil || !r.ok("dedup", "strategy", "identity") {
		return
	}
	if !c.Strategy.Marks() {
		r.refuse("dedup", "this strategy writes no marker, which is what the table would hold", "remove it, or write strategy: marker")
		return
	}
	if s := p.Store(c.Store); s != nil && s.Postgres == nil {
		r.refuse("dedup", "only a table in PostgreSQL can be adopted", "seed its ids instead: semel migrate seed")
	}
	if _, constant := c.Identity.ConstantSource(); !constant && c.Dedup.Columns.Source == "" {
		r.refuse("dedup.columns", fmt.Sprintf("the table has no column for the source, and messages have theirs at %s: one source would hide the messages of another", c.Identity.Source),
			"name the column, as source: origin, or let identity.source be a constant, as \"const:shop\"")
	}
	r.sharing(p)
}

// sharing refuses what one of two consumers would take for its own.
func (r rules) sharing(p *Policy) {
	for _, other := range p.Consumers {
		if other == r.consumer {
			return
		}
		if other.Dedup == nil || other.Store != r.consumer.Store || other.Dedup.Table != r.consumer.Dedup.Table {
			continue
		}
		switch mine, theirs := r.consumer.Dedup, other.Dedup; {
		case mine.Columns.Consumer == "" || theirs.Columns.Consumer == "":
			r.refuse("dedup.table", fmt.Sprintf("consumer %s has this table too, and no column tells the two apart: what one applied the other would skip", other.Name),
				"name the column at both, as columns: {consumer: handler}, or use another table")
		case mine.named(r.consumer.Name) == theirs.named(other.Name):
			r.refuse("dedup.values", fmt.Sprintf("consumer %s has the same value in this table: what one applied the other would skip", other.Name),
				"give each its own")
		}
	}
}

// named is what the column for the consumer says.
func (t *Dedup) named(consumer string) string {
	if value, ok := t.Values[t.Columns.Consumer]; ok {
		return value
	}
	return consumer
}
