package measure

import "slices"

// parts are the parts that a consumer needs, as semel.EventNotReady names them in its Reason: the store, the
// source, the inbox, the broker that receives acks, fetching, the key store if it cannot record the outcome of a
// call, the circuit breaker, and the clock.
var parts = []string{"store", "source", "inbox", "broker", "fetch", "keys", "breaker", "clock"}

// Parts returns the values of the label "part" of metrics, in order.
func Parts() []string { return slices.Clone(parts) }
