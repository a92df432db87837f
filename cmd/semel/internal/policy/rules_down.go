package policy

import (
	"fmt"
	"strings"
)

// whenDown judges whether a consumer may go on while its store is down (C10).
func (r rules) whenDown() {
	c := r.consumer
	if !c.FailOpen || !r.ok("on_store_down", "store", "strategy", "effect") {
		return
	}
	const pause = "write on_store_down: pause"
	kind, declared := c.Effect.known()
	switch {
	case r.store == nil:
	case !r.keyed() && c.Strategy.Lease:
		r.refuse("on_store_down", "a message is received into the store before it is called for, and cannot be while that is down", pause)
	case !r.keyed():
		r.refuse("on_store_down", "the effect is in the store, and nothing can be applied while that is down", pause)
	case !declared:
		r.refuse("on_store_down", "what is applied without a key is applied again with each copy, and nothing says that this does no harm",
			"declare effect: {kind: …, says: \"…\"} of a kind that is idempotent by nature ("+strings.Join(naturalKinds(), ", ")+"), if it is one, or "+pause)
	case kind.refused[byNature] != "":
		r.refuse("on_store_down", fmt.Sprintf("an effect of the kind %s is not idempotent by nature: %s", kind.kind, kind.refused[byNature]), pause)
	}
}

// naturalKinds are the kinds of effects that may be repeated.
func naturalKinds() (kinds []string) {
	for _, k := range effectKinds() {
		if k.refused[byNature] == "" {
			kinds = append(kinds, string(k.kind))
		}
	}
	return kinds
}
