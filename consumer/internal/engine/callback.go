package engine

import (
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/machine"
)

// calls applies the time-out of handlers to the functions that a batch calls back in its Commit.
// If a callback is still running then, its connection is cut and the callback is reported. Its
// worker waits until the callback returns; the other workers continue.
func (p *pilot[Tx]) calls(f *flight[Tx]) {
	back, able := f.Transaction().(admin.QueuedStatements)
	if !able {
		return
	}
	e := p.engine
	back.OnCallback(func(mark int) func() {
		p.handling.Store(true)
		p.committing.Store(false)
		ended := watchCall(e.config, func() {
			f.Kill()
			e.Reporter.CallbackSticks(f.item(mark))
			e.lanes.send(machine.Stuck{Flight: f.Flight, Item: f.item(mark), Committing: true})
		}, e.Reporter.CallbackEnded)
		return func() {
			ended()
			p.committing.Store(true)
			p.handling.Store(false)
		}
	})
}

// watchCall watches one call. watchCall calls stuck once if the call takes too long, and then over
// once when the call has returned.
func watchCall(c *Config, stuck, over func()) (ended func()) {
	w, sticks := &watch{}, make(chan struct{})
	w.start(c.Timeout, func(error) {}, func(*machine.Item) {
		stuck()
		close(sticks)
	})
	w.begin(nil)
	return func() {
		w.end()
		if w.gave() {
			<-sticks
			over()
		}
	}
}

// gave reports whether stuck was called, or is about to be; valid after end.
func (w *watch) gave() bool {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.told
}

// item returns the item of a mark.
func (f *flight[Tx]) item(mark int) *machine.Item { return f.Entries[max(f.entryOf(mark), 0)].Item }
