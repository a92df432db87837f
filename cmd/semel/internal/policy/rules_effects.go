package policy

import (
	"fmt"
	"slices"

	"github.com/semel-go/semel/cmd/semel/internal/sqlhandler"
)

// answers judges what an endpoint's answer may name.
func (r rules) answers(p *Policy, store *Store) {
	const at = "handler.http.effects"
	http := r.consumer.Handler.HTTP
	if store == nil || http == nil || http.Effects == nil {
		return
	}
	if len(http.Effects.Statements)+len(http.Effects.Intents) == 0 && r.ok(at) {
		r.refuse(at, "nothing is declared that an answer could have done", "add statements, or intents: the names of senders")
	}
	for i, name := range http.Effects.Intents {
		if key := fmt.Sprintf("%s.intents[%d]", at, i); r.ok(key) {
			r.intentTo(p, key, name)
		}
	}
	for _, s := range http.Effects.Statements {
		if key := "handler.http.effects.statements." + s.Name; r.ok(key) {
			r.answer(r.consumer.Dialect(store), key, s)
		}
	}
}

func (r rules) answer(d sqlhandler.Dialect, key string, s *AnswerStatement) {
	for _, f := range d.Check(s.SQL) {
		r.refuse(key+".sql", f.Reason, f.Remedy)
	}
	names, err := d.Params(s.SQL)
	for _, name := range names {
		if !slices.ContainsFunc(s.Params, func(p AnswerParam) bool { return p.Name == name }) {
			r.refuse(key+".sql", fmt.Sprintf("nothing is bound to :%s", name), fmt.Sprintf("add it to params with its type, as %s: text", name))
		}
	}
	for _, p := range s.Params {
		if err == nil && !slices.Contains(names, p.Name) {
			r.refuse(key+".params."+p.Name, "the statement does not use this parameter", fmt.Sprintf("write :%s in it, or remove it", p.Name))
		}
	}
	r.rows(d, key, Statement{SQL: s.SQL, Rows: s.Rows, Otherwise: s.Otherwise})
}
