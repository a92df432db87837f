package engine

import (
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/machine"
)

// calls applies the timeout of handlers to the callbacks of a batch: the functions that the batch calls during its
// Commit. If a callback still runs after the timeout, the method calls closes the connection of the batch and reports
// the callback. The worker of the batch waits until the callback returns. Other workers continue.
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

// watchCall limits the time of one call. If the call takes too long, watchCall calls the function stuck once and, when
// the call has returned, the function over once. When the call has returned, the caller must call the returned
// function.
func watchCall(c *Config, stuck, over func()) (ended func()) {
	w, sticks := &watch{}, make(chan struct{})
	w.start(c.Timeout, func(error) {}, func(*machine.Item) {
		stuck()
		close(sticks)
	})
	w.begin(nil)
	return func() {
		w.end()
		if w.isStuck() {
			<-sticks
			over()
		}
	}
}

// isStuck reports whether the function stuck was called, or will be called at once. Call isStuck only after end.
func (w *watch) isStuck() bool {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.told
}

// item returns the message that belongs to a marker of the batch.
func (f *flight[Tx]) item(mark int) *machine.Item { return f.Entries[max(f.entryOf(mark), 0)].Item }
