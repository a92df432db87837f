package webhook

import (
	"context"
	"fmt"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/legible"
	"github.com/semel-go/semel/source"
)

var _ source.Source = (*Receiver)(nil)

// Info implements source.Source.
func (r *Receiver) Info() source.Info {
	return source.Info{Idle: r.isIdle, Ages: r.laneAges, Horizon: r.horizon}
}

// Lanes implements source.Source. A Receiver has one lane, which is assigned with the first Fetch.
func (r *Receiver) Lanes(o source.LaneObserver) { r.observer = o }

// Fetch implements source.Source. Fetch returns the messages of waiting requests. After Close, the error
// wraps semel.ErrClosed.
func (r *Receiver) Fetch(ctx context.Context, most source.Bound) ([]source.Delivery, error) {
	for ctx.Err() == nil {
		if r.begin() {
			r.observer.Given(r.lane)
		}
		out, closed := r.take(most)
		switch {
		case closed:
			return nil, fmt.Errorf("webhook %s: %w", r.config.Name, semel.ErrClosed)
		case len(out) > 0:
			return out, nil
		}
		select {
		case <-ctx.Done():
		case <-r.wake:
		}
	}
	return nil, nil
}

// begin returns true once: when the lane must be assigned.
func (r *Receiver) begin() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	give := r.observer != nil && !r.assigned && !r.closed
	r.assigned = true
	return give
}

func (r *Receiver) take(most source.Bound) (out []source.Delivery, closed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || r.paused {
		return nil, r.closed
	}
	var bytes int64
	for len(r.queue) > 0 && len(out) < max(1, most.Messages) {
		a := r.queue[0]
		if bytes += a.size; len(out) > 0 && bytes > most.Bytes {
			break
		}
		r.queue[0], r.queue = nil, r.queue[1:]
		out = append(out, source.Delivery{Message: &a.message, Lane: r.lane, Before: source.Unknown, Handle: a})
	}
	return out, false
}

// Settle implements source.Source. Settle answers the waiting requests, without I/O. A nacked message gets 503, and the
// provider sends it again. A webhook source has no dead letters. If the consumer asks for a dead letter, Settle returns
// an error that wraps semel.ErrUnsupported.
func (r *Receiver) Settle(_ context.Context, all []source.Settlement) ([]int, error) {
	var left []int
	for i, s := range all {
		a, ok := s.Delivery.Handle.(*arrival)
		switch {
		case !ok || s.Delivery.Lane != r.lane:
		case s.Kind == semel.DeadLetter:
			left = append(left, i)
		default:
			r.settle(a, s)
		}
	}
	if left != nil {
		return left, fmt.Errorf("webhook %s: %w: webhooks have no dead letters; park the message instead", r.config.Name, semel.ErrUnsupported)
	}
	return nil, nil
}

// Flow implements source.Source. Requests of a paused lane wait, and get 503 after
// Config.Wait.
func (r *Receiver) Flow(l source.Lane, on bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if l == r.lane {
		r.paused = !on
		r.wakeUp()
	}
}

// isIdle implements source.Info.Idle. The source is idle if no request waits to be fetched. Requests of a
// paused lane do not count.
func (r *Receiver) isIdle(context.Context) (bool, []semel.Unfinished, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if waiting := len(r.queue); waiting > 0 && r.paused {
		return true, []semel.Unfinished{{Lane: r.lane.ID, Messages: int64(waiting), Reason: "its lane is paused"}}, nil
	}
	return len(r.queue) == 0, nil, nil
}

// laneAges implements source.Info.Ages.
func (r *Receiver) laneAges() (lanes []source.LaneAge, all bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	age := source.LaneAge{Lane: r.lane.ID}
	for a := range r.open {
		if age.Oldest.IsZero() || a.receivedAt.Before(age.Oldest) {
			age.Oldest = a.receivedAt
		}
	}
	return []source.LaneAge{age}, true
}

// horizon implements source.Info.Horizon. The horizon is the time for which the provider may send an event again.
func (r *Receiver) horizon(context.Context) (source.Horizon, error) {
	return source.Horizon{Late: r.config.Repeats, Why: fmt.Sprintf("webhook %s: the provider repeats for %s", r.config.Name, legible.Span(r.config.Repeats))}, nil
}

// Close implements source.Source. Waiting requests and all later requests get 503.
func (r *Receiver) Close(context.Context) error {
	r.mu.Lock()
	r.closed, r.queue = true, nil
	waiting := make([]*arrival, 0, len(r.open))
	for a := range r.open {
		waiting = append(waiting, a)
	}
	r.wakeUp()
	r.mu.Unlock()
	for _, a := range waiting {
		r.settle(a, source.Settlement{Kind: semel.Nack, After: time.Second})
	}
	return nil
}
