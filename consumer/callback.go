package consumer

import (
	"log/slog"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/machine"
)

// calls holds what a batch calls back in its Commit to the time-out of handlers:
// one that goes on has its connection cut, and is told of; its worker waits
// until it returns, and the others go on.
func (p *pilot[Tx]) calls(f *flight[Tx]) {
	back, able := f.transaction().(admin.QueuedStatements)
	if !able {
		return
	}
	e := p.engine
	back.OnCallback(func(mark int) func() {
		p.handling.Store(true)
		p.committing.Store(false)
		ended := watchCall(e.config, func() {
			f.kill()
			e.reporter.callSticks(f.item(mark))
			e.lanes.send(machine.Stuck{Flight: f.Flight, Item: f.item(mark), Committing: true})
		}, e.reporter.callEnds)
		return func() {
			ended()
			p.committing.Store(true)
			p.handling.Store(false)
		}
	})
}

// watchCall watches one call. stuck and, when it was, over are called once each.
func watchCall(c *settings, stuck, over func()) (ended func()) {
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

// item is that of a mark.
func (f *flight[Tx]) item(mark int) *machine.Item { return f.Entries[max(f.entryOf(mark), 0)].Item }

// callSticks tells of a callback that goes on after its time-out.
func (n *reporter) callSticks(it *machine.Item) {
	n.mutex.Lock()
	n.sticking++
	n.ready["callback"] = "a callback goes on after its timeout"
	n.mutex.Unlock()
	n.item(slog.LevelError, semel.EventStuck, machine.Report{Kind: machine.ReportStuck, Item: it, N: 1})
}

// callEnds takes that it has returned.
func (n *reporter) callEnds() {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	if n.sticking--; n.sticking == 0 {
		delete(n.ready, "callback")
	}
}
