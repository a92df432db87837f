package consumer

import (
	"sync/atomic"

	"github.com/semel-go/semel"
)

// typeless is how many messages without a type make a warning.
const typeless = 100

// typeWatch notices that a handler, or Only, asks messages for a type although none of them
// has one: the producers most likely write it in a place that the policy does not name. Its
// methods may be called by several goroutines.
type typeWatch struct {
	// warn is called once.
	warn        func(messages int)
	asked, over atomic.Bool
	without     atomic.Int64
}

// deciding reports whether saw is still to be told of messages.
func (w *typeWatch) deciding() bool {
	return w != nil && !w.over.Load() && w.without.Load() < typeless
}

// saw counts a message. One with a type ends the watch.
func (w *typeWatch) saw(typed bool) {
	switch {
	case typed:
		w.over.Store(true)
	case w.without.Add(1) == typeless:
		w.judge()
	}
}

// ask notes that types are asked for.
func (w *typeWatch) ask() {
	w.asked.Store(true)
	w.judge()
}

func (w *typeWatch) judge() {
	if n := w.without.Load(); n >= typeless && w.asked.Load() && w.over.CompareAndSwap(false, true) {
		w.warn(int(n))
	}
}

// handled looks whether the handler has asked m for its type, and in vain.
func (c *settings) handled(m *semel.Message) {
	if w := c.kinds; w != nil && !w.over.Load() && m.Strict.TypeAsked() {
		w.ask()
	}
}
