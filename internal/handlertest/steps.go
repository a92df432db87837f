package handlertest

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// joinSteps sets Handle to a function that runs all steps in one transaction, for the subtests that call the handler
// without a consumer.
func (h *Handler[Tx]) joinSteps() {
	if len(h.Steps) == 0 {
		return
	}
	h.Handle = func(ctx context.Context, tx Tx, m *semel.Message) error {
		for _, s := range h.Steps {
			if err := s.Run(ctx, tx, m); err != nil {
				return err
			}
		}
		return nil
	}
}

// lastStep returns the index of the last step; 0 for a handler without steps.
func (w *world[Tx]) lastStep() int { return max(len(w.Steps)-1, 0) }

// watchedSteps returns the steps that the consumer runs.
func (w *world[Tx]) watchedSteps() []consumer.Step[Tx] {
	all := make([]consumer.Step[Tx], len(w.Steps))
	for i, s := range w.Steps {
		all[i] = consumer.Step[Tx]{Name: s.Name, Run: func(ctx context.Context, tx Tx, m *semel.Message, _ consumer.Done) ([]byte, error) {
			return nil, w.watch(ctx, tx, m, s.Run)
		}}
	}
	return all
}

// makeDue lets time pass for a handler with steps: delays of retries, or the claims of a crashed process, end.
func (w *world[Tx]) makeDue(state store.RowState) {
	if len(w.Steps) > 0 && w.hasInbox {
		_ = w.requeue(state) // a message whose row is not due gets no ack
	}
}

// runSteps delivers messages to a new process with steps, which stores them in the inbox, acks them, and runs the steps
// that are due. In the result, a message whose row waits for a retry counts as nacked: the next delivery of any message
// makes the row due.
func (w *world[Tx]) runSteps(ctx context.Context, messages []*semel.Message) ([]consumer.Disposition, error) {
	all := make([]consumer.Disposition, len(messages))
	if w.Config.OnParked == consumer.OnParkedBlock && len(messages) > 1 { // a message may wait for the last step of another
		for i := range messages {
			one, err := w.runSteps(ctx, messages[i:i+1])
			if err != nil {
				return all, err
			}
			all[i] = one[0]
		}
		return all, nil
	}
	w.makeDue(store.StateFailedRetryable)
	running, crash := context.WithCancel(ctx)
	defer crash()
	w.plan.set(func(p *plan) { p.onCrash = crash })
	err := w.newConsumer(&list{messages: messages, settled: all}).Run(running)
	for err == nil && running.Err() == nil {
		due, err := w.settleRows(ctx, messages, all)
		if err != nil || !due {
			return all, err
		}
		// A run ends early if the row was locked by a transaction of a crashed process, or if the reply of a COMMIT was lost.
		if err := w.newConsumer(nil).Work(running); err != nil && !w.plan.crashed() {
			return all, err
		}
	}
	if w.plan.crashed() {
		return all, errCrashed
	}
	return all, cmp.Or(err, ctx.Err())
}

// settleRows replaces the outcomes of messages that were stored in the inbox by the outcomes of their rows. The result
// due is true if a row can run now.
func (w *world[Tx]) settleRows(ctx context.Context, messages []*semel.Message, all []consumer.Disposition) (due bool, err error) {
	config := w.policy()
	rows, err := w.wrapped.(store.Inbox).Rows(ctx, store.RowFilter{Consumer: config.Name})
	if err != nil {
		return false, err
	}
	for i, m := range messages {
		from, id, err := config.Identity.Identify(clone(m))
		n := slices.IndexFunc(rows, func(r store.StoredRow) bool { return !r.Conflict && r.Key.Source == from && r.Key.ID == id })
		d := &all[i]
		if err != nil || n < 0 || d.Ending != source.EndReceived && d.Ending != source.EndDuplicate {
			continue
		}
		received := d.Ending == source.EndReceived
		switch r := rows[n]; r.State {
		case store.StateReceived:
			due = true
		case store.StateInProgress, store.StateFailedRetryable:
			*d = consumer.Disposition{Kind: semel.Nack, Reason: r.Reason, Charged: r.State == store.StateFailedRetryable}
		case store.StateCompleted:
			if received {
				d.Ending = source.EndApplied
			}
		case store.StateParked:
			if received {
				d.Ending, d.Reason = source.EndParked, r.Reason
			}
		case store.StateDiscarded:
			if received {
				d.Ending = source.EndDiscarded
			}
		}
	}
	return due, nil
}

// list is a source that delivers messages once and records how they were settled.
type list struct {
	messages []*semel.Message
	observer source.LaneObserver

	mu      sync.Mutex
	settled []consumer.Disposition // by index of the message; mu guards settled
}

// Lanes implements source.Source.
func (s *list) Lanes(o source.LaneObserver) { s.observer = o }

// Fetch implements source.Source.
func (s *list) Fetch(context.Context, source.Bound) ([]source.Delivery, error) {
	lane := source.Lane{ID: "semeltest", Epoch: 1}
	s.observer.Given(lane)
	all := make([]source.Delivery, len(s.messages))
	for i, m := range s.messages {
		all[i] = source.Delivery{Message: m, Lane: lane, Before: source.Unknown, Handle: i}
	}
	return all, source.ErrEnd
}

// Settle implements source.Source.
func (s *list) Settle(_ context.Context, all []source.Settlement) ([]int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range all {
		s.settled[x.Delivery.Handle.(int)] = consumer.Disposition{Kind: x.Kind, Ending: x.Ending, Reason: x.Reason, Charged: x.Charged}
	}
	return nil, nil
}

// Info implements source.Source.
func (*list) Info() source.Info { return source.Info{} }

// Flow implements source.Source.
func (*list) Flow(source.Lane, bool) {}

// Close implements source.Source.
func (*list) Close(context.Context) error { return nil }
