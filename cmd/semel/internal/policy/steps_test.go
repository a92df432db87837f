package policy

import (
	"fmt"
	"strings"
	"testing"
)

// withSteps returns the edits that replace the handler of the policy base with a handler that has steps.
func withSteps(strategy string, steps ...string) []string {
	_, handler, _ := strings.Cut(base, "        statements:\n")
	return []string{"    strategy: marker\n", "    " + strategy + "\n", "        statements:\n" + handler,
		"        steps:\n          - " + strings.Join(steps, "\n          - ") + "\n"}
}

const (
	inboxStrategy = "strategy: inbox\n    ack: after_receipt\n    alerts: {pending_age: 60s}"
	debit         = `{name: debit, statements: ["update accounts set balance = balance - :amount where id = :account"]}`
	note          = `{name: note_2, statements: [{sql: "insert into notes values (:account)", rows: 1}]}`
)

func acceptedSteps() []policyCase {
	return []policyCase{
		{name: "steps", edits: withSteps(inboxStrategy, debit, note)},
		{name: "one step", edits: withSteps(inboxStrategy, debit)},
	}
}

func refusedSteps() []policyCase {
	var many []string
	for i := range 33 {
		many = append(many, strings.Replace(debit, "debit", fmt.Sprintf("debit-%d", i), 1))
	}
	_, handler, _ := strings.Cut(base, "        statements:\n")
	return []policyCase{
		{name: "steps of a marker", edits: withSteps("strategy: marker", debit, note)},
		{name: "steps of a broker that keeps", edits: withSteps("strategy: inbox", debit, note)},
		{name: "steps beside a business key", edits: withSteps("strategy: {inbox: true, business_key: {constraint: accounts.id}}\n    ack: after_receipt\n    alerts: {pending_age: 60s}", debit)},
		{name: "two steps of one name", edits: withSteps(inboxStrategy, debit, debit)},
		{name: "too many steps", edits: withSteps(inboxStrategy, many...)},
		{name: "no step", edits: append(withSteps(inboxStrategy, debit), "        steps:\n          - "+debit, "        steps: []"), shape: true},
		{name: "a step's name in capitals", edits: withSteps(inboxStrategy, strings.Replace(debit, "debit", "Debit", 1)), shape: true},
		{name: "a step's name that is too long", edits: withSteps(inboxStrategy, strings.Replace(debit, "debit", strings.Repeat("d", 65), 1)), shape: true},
		{name: "a step without a name", edits: withSteps(inboxStrategy, strings.Replace(debit, "name: debit, ", "", 1)), shape: true},
		{name: "a step without statements", edits: withSteps(inboxStrategy, debit, "{name: nothing}"), shape: true},
		{name: "a step with a key that is none", edits: withSteps(inboxStrategy, strings.Replace(debit, "name: debit", "name: debit, retires: 3", 1)), shape: true},
		{name: "steps beside statements", edits: []string{"        statements:\n" + handler, "        steps: [" + debit + "]\n        statements:\n" + handler}, shape: true},
		{name: "intents beside steps", edits: append(withSteps(inboxStrategy, debit), "        steps:", "        intents: [{to: billing, purpose: note}]\n        steps:")},
		{name: "a parameter that no step binds", edits: withSteps(inboxStrategy, debit, strings.Replace(note, ":account", ":who", 1))},
		{name: "a parameter that no step uses", edits: withSteps(inboxStrategy, note)},
		{name: "a step that commits", edits: withSteps(inboxStrategy, debit, note, `{name: end, statements: ["commit"]}`)},
		{name: "steps by type", edits: byType(`made: {sql: {steps: [{name: a, statements: ["select 1"]}]}}`)},
		{name: "steps at the consumer", edits: inConsumer("steps: []"), shape: true},
	}
}

func TestStepsOfAPolicy(t *testing.T) {
	t.Run("C11_each_step_has_its_own_statements_and_the_parameters_of_all", func(t *testing.T) {
		p, faults := parse(policyCase{edits: withSteps(inboxStrategy, debit, note)})
		if len(faults) > 0 {
			t.Fatal(faults)
		}
		c := p.Consumers[0]
		all := c.Handlers()
		if len(all) != 2 || all[0].Step != "debit" || all[1].Step != "note_2" || all[1].At != "handler.sql.steps[1]" {
			t.Fatalf("%+v", all)
		}
		for _, s := range all {
			if len(s.Params) != 2 || len(s.Statements) != 1 {
				t.Errorf("step %s: %+v", s.Step, s.SQL)
			}
		}
		if c.Config().AckOnReceipt != true {
			t.Error("it is not received first")
		}
	})
}
