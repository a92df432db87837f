package delivery

import (
	"sync/atomic"
)

// typeless is the number of messages without a type that causes the warning.
const typeless = 100

// TypeWatch notices that a handler, or the filter, asks for the types of messages although no
// message has one: producers probably write the type in a place that the policy does not name.
// Its methods may be called by several goroutines.
type TypeWatch struct {
	// warn is called once.
	warn        func(messages int)
	asked, over atomic.Bool
	without     atomic.Int64
}

// NewTypeWatch returns a watch that calls warn once. With asked, the filter asks for types.
func NewTypeWatch(asked bool, warn func(messages int)) *TypeWatch {
	w := &TypeWatch{warn: warn}
	if asked {
		w.ask()
	}
	return w
}

// deciding reports whether saw must still be called for each message.
func (w *TypeWatch) deciding() bool {
	return w != nil && !w.over.Load() && w.without.Load() < typeless
}

// saw counts a message. A message with a type ends the watch.
func (w *TypeWatch) saw(typed bool) {
	switch {
	case typed:
		w.over.Store(true)
	case w.without.Add(1) == typeless:
		w.judge()
	}
}

// ask notes that a handler or the filter asks for types.
func (w *TypeWatch) ask() {
	w.asked.Store(true)
	w.judge()
}

// judge calls warn if types are asked for and enough messages had none.
func (w *TypeWatch) judge() {
	if n := w.without.Load(); n >= typeless && w.asked.Load() && w.over.CompareAndSwap(false, true) {
		w.warn(int(n))
	}
}
