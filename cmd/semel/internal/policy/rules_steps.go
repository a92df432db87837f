package policy

import (
	"fmt"
	"slices"

	"github.com/semel-go/semel/store"
)

// steps judges a handler that is made of steps.
func (r rules) steps() {
	c := r.consumer
	for _, h := range c.Handler.Types {
		if h.SQL != nil && h.SQL.Steps != nil {
			r.refuse("handler.types"+typePath(h.Type)+".sql.steps", "the steps of a consumer are one list for all of its messages",
				"give this type a consumer of its own, with filter: {type: …} and handler: {sql: {steps: …}}")
		}
	}
	const at = "handler.sql.steps"
	if c.Handler.SQL == nil || c.Handler.SQL.Steps == nil || !r.ok("handler.sql") {
		return
	}
	r.stepNames(at, c.Handler.SQL.Steps)
	if r.set("handler.sql.intents") {
		r.refuse("handler.sql.intents", "with steps an intent is written down with the step that it belongs to", "move it into a step")
	}
	if r.ok("strategy", "ack") {
		r.stepsKept()
	}
}

// stepsKept judges where a message stands between two steps.
func (r rules) stepsKept() {
	switch c := r.consumer; {
	case c.Strategy.BusinessKey != nil:
		r.refuse("strategy", "a business key that one step meets says nothing of the others", "write strategy: inbox, and let a statement meet the key with on conflict")
	case !c.Strategy.Inbox:
		r.refuse("strategy", "between two steps a message waits in its row of the inbox, and this strategy keeps none", "write strategy: inbox, ack: after_receipt and alerts: {pending_age: 60s}")
	case !c.AckOnReceipt:
		r.refuse("ack", "with steps the message is in the store from its first step on, and whoever claims it there goes on; a broker that keeps it as well would wait for its slowest step, and let go of it with the first retry that is longer than max_in_memory_wait", "write ack: after_receipt and alerts: {pending_age: 60s}")
	}
}

func (r rules) stepNames(at string, all []SQLStep) {
	if len(all) > store.MaxSteps {
		r.refuse(at, fmt.Sprintf("there are %d steps", len(all)), fmt.Sprintf("write at most %d", store.MaxSteps))
	}
	for i, step := range all {
		if first := slices.IndexFunc(all, func(s SQLStep) bool { return s.Name == step.Name }); first < i {
			r.refuse(fmt.Sprintf("%s[%d].name", at, i), fmt.Sprintf("step %d is named %s, too, and a row knows a step by its name", first+1, step.Name), "give each a name of its own")
		}
	}
}
