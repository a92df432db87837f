// Package sources contains sources for consumers that have no Source of the user: Calls for Process, and None
// for a consumer that processes its inbox.
package sources

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/source"
)

// Calls is a source that delivers the messages that were passed to Process.
type Calls[Answer any] struct {
	// toAnswer converts a settlement (ack, nack or dead letter) to the result of Process.
	toAnswer func(*source.Settlement) Answer

	lane  source.Lane
	wake  chan struct{}
	Over  chan struct{} // closed when the engine has ended
	given source.LaneObserver

	mutex   sync.Mutex
	waiting []*call[Answer] // guarded by mutex
	ended   error           // guarded by mutex; set before Over is closed
}

// call contains the messages of one call of ProcessAll.
type call[Answer any] struct {
	answers []Answer
	left    int // guarded by the source's mutex
	done    chan struct{}
	pending []*semel.Message
}

// answerPlace is the Handle of a delivery: it says in which call, and at which index, the result of the delivery is
// stored.
type answerPlace[Answer any] struct {
	call  *call[Answer]
	index int
}

// Borrowed implements delivery.Borrowed.
func (answerPlace[Answer]) Borrowed() {}

// NewCalls returns a source. The function answer converts the settlement (ack, nack or dead letter) of a message to the
// result of Process.
func NewCalls[Answer any](answer func(*source.Settlement) Answer) *Calls[Answer] {
	return &Calls[Answer]{toAnswer: answer, lane: source.Lane{ID: "process", Epoch: 1}, wake: make(chan struct{}, 1), Over: make(chan struct{})}
}

// Process passes messages to the engine and returns their answers.
func (s *Calls[Answer]) Process(ctx context.Context, ms []*semel.Message) ([]Answer, error) {
	if len(ms) == 0 {
		return nil, nil
	}
	c := &call[Answer]{answers: make([]Answer, len(ms)), left: len(ms), done: make(chan struct{}), pending: ms}
	s.mutex.Lock()
	s.waiting = append(s.waiting, c)
	s.mutex.Unlock()
	s.nudge()
	select {
	case <-c.done:
		return c.answers, nil
	case <-ctx.Done():
		s.forget(c)
		return nil, ctx.Err()
	case <-s.Over:
	}
	select {
	case <-c.done: // the answers came before the end
		return c.answers, nil
	default:
	}
	s.forget(c)
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.ended != nil {
		return nil, fmt.Errorf("%w: %w", semel.ErrClosed, s.ended)
	}
	return nil, semel.ErrClosed
}

// forget removes a call from the queue when its caller stops waiting. Messages of the call that were fetched
// already are processed.
func (s *Calls[Answer]) forget(c *call[Answer]) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if i := slices.Index(s.waiting, c); i >= 0 {
		s.waiting = slices.Delete(s.waiting, i, i+1)
	}
}

func (s *Calls[Answer]) nudge() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// End ends all calls that have no answer yet, which then return semel.ErrClosed and err.
func (s *Calls[Answer]) End(err error) {
	s.mutex.Lock()
	s.ended = err
	s.mutex.Unlock()
	close(s.Over)
}

// Lanes implements source.Source.
func (s *Calls[Answer]) Lanes(o source.LaneObserver) { s.given = o }

// Fetch implements source.Source.
func (s *Calls[Answer]) Fetch(ctx context.Context, most source.Bound) ([]source.Delivery, error) {
	if s.given != nil {
		s.given.Given(s.lane)
		s.given = nil
	}
	for {
		if taken := s.take(most.Messages); len(taken) > 0 {
			return taken, nil
		}
		select {
		case <-s.wake:
		case <-ctx.Done():
			return nil, nil
		}
	}
}

// take returns messages, at most as many as the parameter most says. The messages of one call of ProcessAll may be
// returned by several calls of take.
func (s *Calls[Answer]) take(most int) []source.Delivery {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	var out []source.Delivery
	for len(s.waiting) > 0 && len(out) < most {
		c := s.waiting[0]
		n := min(len(c.pending), most-len(out))
		first := len(c.answers) - len(c.pending)
		for i, m := range c.pending[:n] {
			out = append(out, source.Delivery{Message: m, Lane: s.lane, Before: max(m.Attempt-1, source.Unknown), Handle: answerPlace[Answer]{c, first + i}})
		}
		c.pending = c.pending[n:]
		if len(c.pending) == 0 {
			s.waiting = s.waiting[1:]
		}
	}
	return out
}

// Settle implements source.Source.
func (s *Calls[Answer]) Settle(_ context.Context, settlements []source.Settlement) ([]int, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for i := range settlements {
		x := &settlements[i]
		p := x.Delivery.Handle.(answerPlace[Answer])
		p.call.answers[p.index] = s.toAnswer(x)
		if p.call.left--; p.call.left == 0 {
			close(p.call.done)
		}
	}
	return nil, nil
}

// Info implements source.Source.
func (*Calls[Answer]) Info() source.Info { return source.Info{} }

// Flow implements source.Source.
func (s *Calls[Answer]) Flow(source.Lane, bool) {}

// Close implements source.Source.
func (s *Calls[Answer]) Close(context.Context) error { return nil }
