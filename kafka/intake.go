package kafka

import (
	"sync"

	"github.com/semel-go/semel/kafka/internal/hook"
	"github.com/semel-go/semel/source"
)

// intake gives lanes what the client has polled, and tells the client what to
// fetch of them. What of a lane cannot be read ends here.
type intake struct {
	config *Config
	budget *hook.Budget
	member *member
	faults *faultList
	lanes  *lanes

	mu sync.Mutex // guards the rest; no other lock is taken under it
	// corruptBatches are those that could not be read. They outlast their lanes.
	corruptBatches map[topicPartition]corruptBatch
}

// flow pauses or resumes a lane.
func (i *intake) flow(which source.Lane, on bool) {
	for l := range i.lanes.each {
		if l.id == which && !l.gone {
			l.paused = !on
			i.reflow(l)
		}
	}
}

// reflow tells the client what it should fetch of a lane. Called with lanes.mu
// held.
func (i *intake) reflow(l *lane) {
	client := i.member.current()
	switch {
	case client == nil:
	case l.paused || l.full || l.overBudget || l.broken != nil:
		client.PauseFetchPartitions(l.asMap())
	default:
		client.ResumeFetchPartitions(l.asMap())
	}
}

// refill resumes a lane whose window was full. Called with lanes.mu held.
func (i *intake) refill(l *lane) {
	if l.full && len(l.window) <= resumeWindow {
		l.full = false
		i.reflow(l)
	}
}

// pauseOverBudget stops reading a lane until there is room for its next batch.
// Called with lanes.mu held.
func (i *intake) pauseOverBudget(l *lane) {
	if l != nil && !l.gone && !l.overBudget {
		l.overBudget = true
		i.reflow(l)
	}
}

// resumeInBudget goes on with lanes for whose batches there was no room: with all
// when much of the budget is free, and with one when nothing else is there to be
// delivered. Called with lanes.mu held.
func (i *intake) resumeInBudget(lanes []*lane, nothing bool) {
	all, one := i.budget.Fits()
	one = one && nothing
	for _, l := range lanes {
		if l.overBudget && (all || one) {
			l.overBudget, one = false, false
			i.reflow(l)
		}
	}
}

// standStill ends reading a lane, and says why for as long as it is here.
// Called with lanes.mu held.
func (i *intake) standStill(l *lane, why error) {
	l.broken = why
	l.setFault(why)
	i.reflow(l) // the client would ask for it without a pause
	i.lanes.touch()
}
