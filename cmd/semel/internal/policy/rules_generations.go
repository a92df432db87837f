package policy

import (
	"fmt"
	"slices"

	"github.com/semel-go/semel/cmd/semel/internal/sqlhandler"
	"github.com/semel-go/semel/consumer"
)

// generational reports whether a statement writes into the generation that the consumer
// works in.
func (h Statements) generational(d sqlhandler.Dialect, s Statement) bool {
	names, err := d.Params(s.SQL)
	return err == nil && slices.Contains(names, sqlhandler.Generation) &&
		!slices.ContainsFunc(h.Params, func(p Param) bool { return p.Name == sqlhandler.Generation })
}

// Generational reports whether the consumer's statements have :generation, so that its
// effects can be built anew beside the live ones.
func (p *Policy) Generational(c *Consumer) bool {
	store := p.Store(c.Store)
	if store == nil || store.Redis != nil {
		return false
	}
	return slices.ContainsFunc(c.Handlers(), func(h Statements) bool {
		return slices.ContainsFunc(h.Statements, func(s Statement) bool { return h.generational(c.Dialect(store), s) })
	})
}

// Generation is the number of the generation that it works in: 0 where nobody says.
func (c *Consumer) Generation() *int64 {
	number := int64(0)
	if c.In != nil {
		number = c.In.Number
	}
	return &number
}

// Rebuilds reports whether it fills a generation beside the active one.
func (c *Consumer) Rebuilds() bool { return c.In != nil && c.In.Building }

// generations judges a consumer of which a statement has :generation: one without it would
// change the rows of the live generation in a rebuild.
func (r rules) generations(store *Store) {
	c := r.consumer
	d := c.Dialect(store)
	first, without := "", []string{}
	for _, h := range c.Handlers() {
		for i, s := range h.Statements {
			at := fmt.Sprintf("%s.statements[%d]", h.At, i)
			switch {
			case !h.generational(d, s) && d.Changes(s.SQL):
				without = append(without, at)
			case first == "" && h.generational(d, s):
				first = at
			}
		}
	}
	if first == "" {
		return
	}
	for _, at := range without {
		r.refuse(at, "another statement of this consumer has :generation, and this one changes rows without it: a rebuild would change the live ones",
			"give its table a column for the generation, and write :generation here, too")
	}
	switch {
	case store.Redis != nil:
	case c.Strategy.kind() != consumer.StrategyMarker && c.Strategy.kind() != consumer.StrategyInbox:
		r.refuse(first, "it has :generation, and without markers a generation recognises nothing", "use strategy: marker or inbox")
	case c.Dedup != nil:
		r.refuse(first, "it has :generation, and a table of yours (dedup) has the markers of one alone", "remove dedup, or :generation")
	case c.Retention.DailyPartitions:
		r.refuse(first, "it has :generation, and markers by day (retention.daily_partitions) are of one alone", "remove daily_partitions, or :generation")
	}
}

// MayRebuild says which rule refuses a rebuild of the consumer; nil if none does.
func (p *Policy) MayRebuild(c *Consumer) *Fault {
	if f := p.MayReplay(c); f != nil {
		return f
	}
	at := "consumers." + c.Name
	refused := func(path, reason, remedy string) *Fault {
		f := p.Fault(at+path, reason, remedy)
		return &f
	}
	switch {
	case !p.Generational(c):
		return refused(".handler", "a rebuild needs a target of its own: each of its markers is fresh, and these statements would change the live rows a second time",
			"give the tables a column for the generation, and write :generation in every statement that changes them; see docs/rebuild.md")
	case c.Replay.Effects:
		return refused(".replay.effects", "a rebuild has no effects outside of the store, and the policy says real", "write effects: none")
	case slices.ContainsFunc(c.Handlers(), func(h Statements) bool { return len(h.Intents) > 0 }):
		return refused(".handler", "this consumer writes intents, and a rebuild would write each of them again", "have a consumer of its own write the intents, and rebuild the one that keeps the rows")
	}
	return nil
}
