package measure

import "slices"

// parts are what a consumer needs to go on, as semel.EventNotReady names it in its Reason:
// the store, the source, the inbox in the store, the broker that is told of endings, room to
// fetch, and the store of leased keys where it does not record what a call has come to.
var parts = []string{"store", "source", "inbox", "broker", "fetch", "keys", "breaker", "clock"}

// Parts are the values of the label "part" of figures, in their order.
func Parts() []string { return slices.Clone(parts) }
