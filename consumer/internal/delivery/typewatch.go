package delivery

import (
	"sync/atomic"
)

// typeless is the number of messages without a type after which TypeWatch warns.
const typeless = 100

// TypeWatch warns if a handler or the filter uses the types of messages although no message has a type. The cause is
// probably that producers write the type to a field or header that the policy does not name. TypeWatch is safe for
// concurrent use.
type TypeWatch struct {
	// warn is called at most once, with the number of messages.
	warn        func(messages int)
	asked, over atomic.Bool
	without     atomic.Int64
}

// NewTypeWatch returns a TypeWatch that calls the function warn. If the parameter asked is true, the filter uses types.
func NewTypeWatch(asked bool, warn func(messages int)) *TypeWatch {
	w := &TypeWatch{warn: warn}
	if asked {
		w.requireTypes()
	}
	return w
}

// isUndecided reports whether countMessage must be called for the next messages.
func (w *TypeWatch) isUndecided() bool {
	return w != nil && !w.over.Load() && w.without.Load() < typeless
}

// countMessage counts a message. A message with a type ends the watch.
func (w *TypeWatch) countMessage(typed bool) {
	switch {
	case typed:
		w.over.Store(true)
	case w.without.Add(1) == typeless:
		w.warnIfUntyped()
	}
}

// requireTypes records that a handler or the filter uses types.
func (w *TypeWatch) requireTypes() {
	w.asked.Store(true)
	w.warnIfUntyped()
}

// warnIfUntyped calls the function warn if types are used and enough messages had no type.
func (w *TypeWatch) warnIfUntyped() {
	if n := w.without.Load(); n >= typeless && w.asked.Load() && w.over.CompareAndSwap(false, true) {
		w.warn(int(n))
	}
}
