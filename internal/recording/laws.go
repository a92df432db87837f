package recording

import (
	"fmt"
	"slices"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// Broken is a violation of a law that is visible in events and actions.
type Broken struct {
	// Law is the name of the violated law in docs/internals/numbers.md.
	Law string
	// How describes the decision that violates the law.
	How string
}

func (b *Broken) String() string { return b.Law + ": " + b.How }

// mostStill is the maximum number of steps of a machine at one point in time. A machine that makes more steps without
// time passing is reported as a busy loop.
const mostStill = 100_000

// watch checks each step for violations of the laws that are visible in events and actions alone. A watch needs only a
// few words of memory for each worker, so production can use it, too. The simulator checks a machine against all laws.
type watch struct {
	workers []watched
	still   int
	at      time.Duration
}

// watched is the state of a worker's batch.
type watched struct {
	open, ran, failed bool
	fresh             []int
	done              int
}

// step returns the first law that a step violates, or nil if the step violates no law.
func (w *watch) step(e machine.Event, now time.Duration, actions []machine.Action) *Broken {
	w.recordEvent(e)
	if now > w.at {
		w.at, w.still = now, 0
	}
	if w.still++; w.still == mostStill {
		return &Broken{"law 11", fmt.Sprintf("it spins: %d steps at one instant", w.still)}
	}
	for _, a := range actions {
		if b := w.checkAction(e, a); b != nil {
			return b
		}
	}
	if e, over := e.(machine.Ended); over && !w.begins(actions, e.Flight.Worker) {
		w.workers[e.Flight.Worker].open = false
	}
	return nil
}

func (w *watch) begins(actions []machine.Action, worker int) bool {
	return slices.ContainsFunc(actions, func(a machine.Action) bool {
		b, is := a.(machine.Begin)
		return is && b.Flight.Worker == worker
	})
}

func (w *watch) recordEvent(e machine.Event) {
	switch e := e.(type) {
	case machine.Marked:
		if e.Class != store.ClassNone {
			w.workers[e.Flight.Worker] = watched{}
		}
	case machine.Ran:
		f := &w.workers[e.Flight.Worker]
		f.failed, f.done = e.Failed, e.Done
	case machine.Ended:
		w.workers[e.Flight.Worker].open = false
	}
}

func (w *watch) checkAction(e machine.Event, a machine.Action) *Broken {
	switch a := a.(type) {
	case machine.Begin:
		f := &w.workers[a.Flight.Worker]
		if f.open {
			return &Broken{"law 3", fmt.Sprintf("worker %d begins flight %d while its last one is open", a.Flight.Worker, a.Flight.Number)}
		}
		*f = watched{open: true}
	case machine.Run:
		f := &w.workers[a.Flight.Worker]
		if f.ran {
			return &Broken{"law 3", fmt.Sprintf("handlers run twice in the transaction of flight %d", a.Flight.Number)}
		}
		f.ran, f.fresh = true, a.Fresh
	case machine.Commit:
		return w.checkCommit(a)
	case *machine.Settle:
		return w.checkSettle(e, a.Items)
	case machine.Over:
		one := [1]machine.Settlement{a.Settlement}
		return w.checkSettle(e, one[:])
	}
	return nil
}

func (w *watch) checkCommit(a machine.Commit) *Broken {
	f := &w.workers[a.Flight.Worker]
	if f.failed {
		return &Broken{"law 3", fmt.Sprintf("flight %d is committed although a handler of it failed", a.Flight.Number)}
	}
	if f.ran && f.done <= len(f.fresh) {
		for _, entry := range f.fresh[f.done:] {
			if !slices.Contains(a.Trim, entry) {
				return &Broken{"law 1", fmt.Sprintf("flight %d commits the mark of entry %d, whose handler did not run", a.Flight.Number, entry)}
			}
		}
	}
	return nil
}

// checkSettle checks that a message is acked only in the step of the commit that ended the message.
func (w *watch) checkSettle(e machine.Event, all []machine.Settlement) *Broken {
	ended, _ := e.(machine.Ended)
	next := 0
	for i := range all {
		s := &all[i]
		if s.Kind != semel.Ack || s.Again || s.Ending == source.EndSkipped || s.Ending == source.EndDuplicate {
			continue
		}
		if ended.Flight == nil || ended.Outcome != store.Committed {
			return &Broken{"law 2", fmt.Sprintf("message %d is settled as %s, but no commit of it was reported", s.Item.Arrival(), s.Ending)}
		}
		entries := ended.Flight.Entries
		for next < len(entries) && entries[next].Item != s.Item {
			next++
		}
		if next == len(entries) {
			return &Broken{"law 2", fmt.Sprintf("message %d is settled as %s, but is not in flight %d, which was committed", s.Item.Arrival(), s.Ending, ended.Flight.Number)}
		}
	}
	return nil
}
