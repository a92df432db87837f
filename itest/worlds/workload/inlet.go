package workload

import (
	"context"
	"sync"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/source"
)

// Inlet is a source into which a test can put messages at any time.
type Inlet struct {
	observer source.LaneObserver
	given    bool
	fresh    chan struct{} // has room for one signal that the fields below have changed

	mu      sync.Mutex
	pending []*semel.Message            // mu guards pending and the fields below
	ended   bool                        // no further messages follow
	settled map[string]semel.SettleKind // by id: whether the message was last acked, nacked or dead-lettered
	times   map[string]int              // by id: number of acks, nacks and dead letters of the message
}

// NewInlet returns an empty inlet.
func NewInlet() *Inlet {
	return &Inlet{fresh: make(chan struct{}, 1), settled: map[string]semel.SettleKind{}, times: map[string]int{}}
}

// Put delivers the given messages in one fetch.
func (s *Inlet) Put(messages ...*semel.Message) {
	s.mu.Lock()
	s.pending = append(s.pending, messages...)
	s.mu.Unlock()
	s.signal()
}

// End declares that no further messages follow.
func (s *Inlet) End() {
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	s.signal()
}

func (s *Inlet) signal() {
	select {
	case s.fresh <- struct{}{}:
	default:
	}
}

// Settled returns the last reaction to a message (ack, nack or dead letter), and the number of reactions.
func (s *Inlet) Settled(id string) (semel.SettleKind, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.settled[id], s.times[id]
}

// Lanes implements source.Source.
func (s *Inlet) Lanes(o source.LaneObserver) { s.observer = o }

// Fetch implements source.Source.
func (s *Inlet) Fetch(ctx context.Context, most source.Bound) ([]source.Delivery, error) {
	if !s.given {
		s.given = true
		s.observer.Given(lane)
	}
	for {
		if taken, over := s.take(most.Messages); over {
			return taken, source.ErrEnd
		} else if len(taken) > 0 {
			return taken, nil
		}
		select {
		case <-s.fresh:
		case <-ctx.Done():
			return nil, nil
		}
	}
}

func (s *Inlet) take(most int) (taken []source.Delivery, over bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := min(most, len(s.pending))
	for _, m := range s.pending[:n] {
		taken = append(taken, source.Delivery{Message: m, Lane: lane, Before: source.Unknown})
	}
	s.pending = s.pending[n:]
	return taken, s.ended && len(s.pending) == 0
}

// Settle implements source.Source.
func (s *Inlet) Settle(_ context.Context, settlements []source.Settlement) ([]int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range settlements {
		id, _ := settlements[i].Delivery.Message.Headers.Get("id")
		s.settled[string(id)] = settlements[i].Kind
		s.times[string(id)]++
	}
	return nil, nil
}

// Info implements source.Source.
func (*Inlet) Info() source.Info { return source.Info{} }

// Flow implements source.Source.
func (s *Inlet) Flow(source.Lane, bool) {}

// Close implements source.Source.
func (s *Inlet) Close(context.Context) error { return nil }
