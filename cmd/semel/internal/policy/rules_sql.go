package policy

import (
	"fmt"
	"slices"

	"github.com/semel-go/semel/cmd/semel/internal/policy/shape"
	"github.com/semel-go/semel/cmd/semel/internal/sqlhandler"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/internal/selectors"
)

// checkHandler checks the SQL of a consumer's handler.
func (r rules) checkHandler(store *Store) {
	if store == nil {
		return // another rule has reported the unknown store
	}
	used, unread := map[string]bool{}, map[string]bool{} // the keys are the paths of parameters
	for _, h := range r.consumer.Handlers() {
		if !r.checkStatements(r.consumer.Dialect(store), h, used) {
			unread[h.ParamsAt] = true
		}
	}
	for _, h := range r.consumer.Handlers() {
		if !unread[h.ParamsAt] {
			r.warnUnusedParams(h, used)
		}
	}
	r.checkGenerations(store)
}

// checkStatements checks the statements of a handler or step. The method adds the paths of the used
// parameters to the map used, and reports whether all statements could be parsed.
func (r rules) checkStatements(dialect sqlhandler.Dialect, h Statements, used map[string]bool) (whole bool) {
	r.checkConstants(dialect, h)
	whole = r.isValid(h.At+".statements", h.ParamsAt+".steps")
	for i, s := range h.Statements {
		key := fmt.Sprintf("%s.statements[%d]", h.At, i)
		if !r.isValid(key) {
			continue
		}
		names, err := dialect.Params(s.SQL)
		for _, name := range names {
			used[h.param(name)] = true
		}
		whole = whole && err == nil
		r.checkStatement(dialect, key, s, h.unbound(names))
		r.checkRowCount(dialect, key, s)
	}
	return whole
}

// checkConstants rejects a constant parameter that does not have the declared type. A constant of
// another type would park every message.
func (r rules) checkConstants(d sqlhandler.Dialect, h Statements) {
	for _, p := range h.Params {
		s, err := selectors.Parse(p.Selector)
		if key := h.param(p.Name); err == nil && r.isValid(key) {
			if err := d.Constant(p.Type, s); err != nil {
				r.refuse(key, fmt.Sprintf("%q %v", p.Selector, err), "write a constant of this type, or change the type")
			}
		}
	}
}

func (h Statements) param(name string) string { return h.ParamsAt + ".params." + name }

func (r rules) checkStatement(d sqlhandler.Dialect, key string, s Statement, unbound []string) {
	for _, f := range d.Check(s.SQL) {
		r.refuse(key, f.Reason, f.Remedy)
	}
	for _, name := range unbound {
		r.refuse(key, fmt.Sprintf("no parameter is bound to :%s", name),
			fmt.Sprintf(`add it to params, as %s: "body:/%s"`, name, name))
	}
	why := d.NotNatural(s.SQL)
	r.warnIf(why != "" && r.consumer.Strategy.Natural != nil, key, "the strategy is natural, and this statement does not look idempotent: "+why,
		"set a state instead of changing it, add a conflict clause, or use strategy: marker")
}

func (r rules) checkRowCount(d sqlhandler.Dialect, key string, s Statement) {
	switch {
	case r.refuseIf(s.Rows != nil && !d.Changes(s.SQL), key+".rows", "the number of rows that this statement changes is unknown", "remove rows"):
	case r.refuseIf(s.Rows == nil && s.Otherwise != "", key+".otherwise", "rows is missing", "add rows: 1"):
	}
}

// unbound returns the names that have no parameter in the handler.
func (h Statements) unbound(names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return name == sqlhandler.Generation || slices.ContainsFunc(h.Params, func(p Param) bool { return p.Name == name })
	})
}

func (r rules) warnUnusedParams(h Statements, used map[string]bool) {
	for _, p := range h.Params {
		key := h.param(p.Name)
		r.refuseIf(!used[key] && r.isValid(key), key, "no statement uses this parameter", fmt.Sprintf("write :%s in a statement, or remove it", p.Name))
	}
}

// checkAnswers checks the SQL statements that an endpoint's response may name.
func (r rules) checkAnswers(p *Policy, store *Store) {
	const at = "handler.http.effects"
	http := r.consumer.Handler.HTTP
	if store == nil || http == nil || http.Effects == nil {
		return
	}
	r.refuseIf(len(http.Effects.Statements)+len(http.Effects.Intents) == 0 && r.isValid(at), at, "no effect is declared that a response could request", "add statements, or intents: the names of senders")
	for i, name := range http.Effects.Intents {
		if key := fmt.Sprintf("%s.intents[%d]", at, i); r.isValid(key) {
			r.checkRecipient(p, key, name)
		}
	}
	for _, s := range http.Effects.Statements {
		if key := "handler.http.effects.statements." + s.Name; r.isValid(key) {
			r.checkAnswer(r.consumer.Dialect(store), key, s)
		}
	}
}

func (r rules) checkAnswer(d sqlhandler.Dialect, key string, s *AnswerStatement) {
	for _, f := range d.Check(s.SQL) {
		r.refuse(key+".sql", f.Reason, f.Remedy)
	}
	names, err := d.Params(s.SQL)
	for _, name := range names {
		r.refuseIf(!slices.ContainsFunc(s.Params, func(p AnswerParam) bool { return p.Name == name }), key+".sql", fmt.Sprintf("no parameter is bound to :%s", name), fmt.Sprintf("add it to params with its type, as %s: text", name))
	}
	for _, p := range s.Params {
		r.refuseIf(err == nil && !slices.Contains(names, p.Name), key+".params."+p.Name, "the statement does not use this parameter", fmt.Sprintf("write :%s in it, or remove it", p.Name))
	}
	r.checkRowCount(d, key, Statement{SQL: s.SQL, Rows: s.Rows, Otherwise: s.Otherwise})
}

// generational reports whether a statement uses the built-in parameter :generation.
func (h Statements) generational(d sqlhandler.Dialect, s Statement) bool {
	names, err := d.Params(s.SQL)
	return err == nil && slices.Contains(names, sqlhandler.Generation) &&
		!slices.ContainsFunc(h.Params, func(p Param) bool { return p.Name == sqlhandler.Generation })
}

// Generational reports whether the consumer's statements use :generation. With :generation, a rebuild can
// write its results beside the active generation.
func (p *Policy) Generational(c *Consumer) bool {
	store := p.Store(c.Store)
	if store == nil || store.Redis != nil {
		return false
	}
	return slices.ContainsFunc(c.Handlers(), func(h Statements) bool {
		return slices.ContainsFunc(h.Statements, func(s Statement) bool { return h.generational(c.Dialect(store), s) })
	})
}

// Generation returns the number of the generation that the consumer works in. A consumer without generations
// has generation 0.
func (c *Consumer) Generation() *int64 {
	number := int64(0)
	if c.In != nil {
		number = c.In.Number
	}
	return &number
}

// Rebuilds reports whether the consumer fills a generation that is not yet active.
func (c *Consumer) Rebuilds() bool { return c.In != nil && c.In.Building }

// checkGenerations checks a consumer with :generation in at least one statement. A statement without :generation is a
// fault, because a rebuild would change rows of the active generation.
func (r rules) checkGenerations(store *Store) {
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
		r.refuse(at, "another statement of this consumer has :generation, but this one changes rows without it: a rebuild would change the live rows",
			"add a column for the generation to its table, and write :generation here too")
	}
	switch {
	case store.Redis != nil:
	case r.refuseIf(c.Strategy.kind() != consumer.StrategyMarker && c.Strategy.kind() != consumer.StrategyInbox, first, "it has :generation, which needs markers to recognise duplicates in each generation", "use strategy: marker or inbox"):
	case r.refuseIf(c.Dedup != nil, first, "it has :generation, but your own table (dedup) has the markers of only one generation", "remove dedup, or :generation"):
	case r.refuseIf(c.Retention.DailyPartitions, first, "it has :generation, but daily partitions (retention.daily_partitions) have the markers of only one generation", "remove daily_partitions, or :generation"):
	}
}

// MayRebuild returns a fault that explains why the policy forbids a rebuild of the consumer; nil if a
// rebuild is allowed.
func (p *Policy) MayRebuild(c *Consumer) *shape.Fault {
	if f := p.MayReplay(c); f != nil {
		return f
	}
	at := "consumers." + c.Name
	refused := func(path, reason, remedy string) *shape.Fault {
		f := p.Fault(at+path, reason, remedy)
		return &f
	}
	switch {
	case !p.Generational(c):
		return refused(".handler", "a rebuild needs its own target: it has no markers yet, so these statements would change the live rows a second time",
			"add a column for the generation to the tables, and write :generation in every statement that changes them; see docs/operate/rebuild.md")
	case c.Replay.Effects:
		return refused(".replay.effects", "a rebuild has no external effects, but the policy has effects: real", "write effects: none")
	case slices.ContainsFunc(c.Handlers(), func(h Statements) bool { return len(h.Intents) > 0 }):
		return refused(".handler", "this consumer writes intents, and a rebuild would write all of them again", "let another consumer write the intents, and rebuild the consumer that writes the rows")
	}
	return nil
}
