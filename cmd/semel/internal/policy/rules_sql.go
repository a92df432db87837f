package policy

import (
	"fmt"
	"slices"

	"github.com/semel-go/semel/cmd/semel/internal/sqlhandler"
	"github.com/semel-go/semel/identity"
)

// handler judges the SQL of a consumer.
func (r rules) handler(store *Store) {
	if store == nil {
		return // which has been reported
	}
	used, unread := map[string]bool{}, map[string]bool{} // by the path of params
	for _, h := range r.consumer.Handlers() {
		if !r.statements(r.consumer.Dialect(store), h, used) {
			unread[h.ParamsAt] = true
		}
	}
	for _, h := range r.consumer.Handlers() {
		if !unread[h.ParamsAt] {
			r.unusedParams(h, used)
		}
	}
	r.generations(store)
}

// statements judges those of one handler or step, adds the paths of the parameters that
// they use, and reports whether all could be read.
func (r rules) statements(dialect sqlhandler.Dialect, h Statements, used map[string]bool) (whole bool) {
	r.constants(dialect, h)
	whole = r.ok(h.At+".statements", h.ParamsAt+".steps")
	for i, s := range h.Statements {
		key := fmt.Sprintf("%s.statements[%d]", h.At, i)
		if !r.ok(key) {
			continue
		}
		names, err := dialect.Params(s.SQL)
		for _, name := range names {
			used[h.param(name)] = true
		}
		whole = whole && err == nil
		r.statement(dialect, key, s, h.unbound(names))
		r.rows(dialect, key, s)
	}
	return whole
}

// constants refuses a constant that is not of its parameter's type: each message would be parked.
func (r rules) constants(d sqlhandler.Dialect, h Statements) {
	for _, p := range h.Params {
		s, err := identity.ParseSelector(p.Selector)
		if key := h.param(p.Name); err == nil && r.ok(key) {
			if err := d.Constant(p.Type, s); err != nil {
				r.refuse(key, fmt.Sprintf("%q %v", p.Selector, err), "write a constant of this type, or another type")
			}
		}
	}
}

// param is the path of a parameter.
func (h Statements) param(name string) string { return h.ParamsAt + ".params." + name }

func (r rules) statement(d sqlhandler.Dialect, key string, s Statement, unbound []string) {
	for _, f := range d.Check(s.SQL) {
		r.refuse(key, f.Reason, f.Remedy)
	}
	for _, name := range unbound {
		r.refuse(key, fmt.Sprintf("nothing is bound to :%s", name),
			fmt.Sprintf(`add it to params, as %s: "body:/%s"`, name, name))
	}
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

// unbound are the names that no parameter has.
func (h Statements) unbound(names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return name == sqlhandler.Generation || slices.ContainsFunc(h.Params, func(p Param) bool { return p.Name == name })
	})
}

func (r rules) unusedParams(h Statements, used map[string]bool) {
	for _, p := range h.Params {
		if key := h.param(p.Name); !used[key] && r.ok(key) {
			r.refuse(key, "no statement uses this parameter", fmt.Sprintf("write :%s in a statement, or remove it", p.Name))
		}
	}
}
