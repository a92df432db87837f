package policy

import (
	"fmt"
	"slices"

	"github.com/semel-go/semel/cmd/semel/internal/sqlhandler"
)

// handler judges the SQL of a consumer.
func (r rules) handler(store *Store) {
	h := r.consumer.Handler.SQL
	if h == nil || store == nil {
		return // the missing store has been reported
	}
	dialect := store.Dialect()
	used, whole := map[string]bool{}, r.ok("handler.sql.statements")
	for i, s := range h.Statements {
		key := fmt.Sprintf("handler.sql.statements[%d]", i)
		if !r.ok(key) {
			continue
		}
		names, err := dialect.Params(s.SQL)
		for _, name := range names {
			used[name] = true
		}
		whole = whole && err == nil
		r.statement(dialect, key, s, names)
	}
	if whole {
		r.unusedParams(used)
	}
}

func (r rules) statement(d sqlhandler.Dialect, key string, s Statement, params []string) {
	for _, f := range d.Check(s.SQL) {
		r.refuse(key, f.Reason, f.Remedy)
	}
	for _, name := range params {
		if !r.bound(name) {
			r.refuse(key, fmt.Sprintf("nothing is bound to :%s", name),
				fmt.Sprintf(`add it to params, as %s: "body:/%s"`, name, name))
		}
	}
	r.rows(d, key, s)
	if why := d.NotNatural(s.SQL); why != "" && r.consumer.Strategy.Natural != nil {
		r.warn(key, "the strategy is natural, and this statement does not look idempotent: "+why,
			"write a state instead of a change, add a conflict clause, or use strategy: marker")
	}
}

func (r rules) rows(d sqlhandler.Dialect, key string, s Statement) {
	switch {
	case s.Rows != nil && !d.Changes(s.SQL):
		r.refuse(key+".rows", "this statement changes no rows that could be counted", "remove rows")
	case s.Rows == nil && s.Otherwise != "":
		r.refuse(key+".otherwise", "nothing says how many rows are expected", "add rows: 1")
	}
}

func (r rules) bound(name string) bool {
	return slices.ContainsFunc(r.consumer.Handler.SQL.Params, func(p Param) bool { return p.Name == name })
}

func (r rules) unusedParams(used map[string]bool) {
	for _, p := range r.consumer.Handler.SQL.Params {
		if !used[p.Name] && r.ok("handler.sql.params."+p.Name) {
			r.refuse("handler.sql.params."+p.Name, "no statement uses this parameter",
				fmt.Sprintf("write :%s in a statement, or remove it", p.Name))
		}
	}
}
