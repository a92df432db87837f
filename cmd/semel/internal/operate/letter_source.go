package operate

import (
	"context"
	"sync"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/source"
)

// letterSource is a source that delivers each dead letter once and then ends.
type letterSource struct {
	all []source.Delivery
	// rate is the maximum number of deliveries per second; 0 means no limit.
	rate float64
	// onSettled is called with the ack or nack of each delivery. Its parameter handle is the Handle of
	// this delivery. Calls do not overlap.
	onSettled func(handle int, s source.Settlement)

	lane source.Lane
	next int
	last time.Time
	mu   sync.Mutex // mu prevents concurrent calls of ended
}

// Info implements source.Source.
func (s *letterSource) Info() source.Info {
	return source.Info{
		Bounded: true, AtEnd: s.atEnd,
		Idle: func(context.Context) (bool, []semel.Unfinished, error) { return s.atEnd(), nil, nil },
	}
}

func (s *letterSource) atEnd() bool { return s.next == len(s.all) }

// Lanes implements source.Source.
func (s *letterSource) Lanes(o source.LaneObserver) {
	s.lane = source.Lane{ID: "dead letters", Epoch: 1}
	o.Given(s.lane)
}

// Fetch implements source.Source.
func (s *letterSource) Fetch(ctx context.Context, most source.Bound) ([]source.Delivery, error) {
	if s.atEnd() {
		return nil, source.ErrEnd
	}
	n := max(1, most.Messages)
	if s.rate > 0 {
		if err := pause(ctx, time.Until(s.last.Add(time.Duration(float64(time.Second)/s.rate)))); err != nil {
			return nil, nil // the wait ended before anything was fetched
		}
		n, s.last = 1, time.Now()
	}
	var got []source.Delivery
	var bytes int64
	for len(got) < n && s.next < len(s.all) && (len(got) == 0 || most.Bytes <= 0 || bytes < most.Bytes) {
		d := s.all[s.next]
		d.Lane = s.lane
		bytes += int64(len(d.Message.Body))
		got = append(got, d)
		s.next++
	}
	return got, nil
}

// Settle implements source.Source.
func (s *letterSource) Settle(_ context.Context, all []source.Settlement) ([]int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range all {
		if i, is := one.Delivery.Handle.(int); is && one.Kind == semel.Ack {
			s.onSettled(i, one)
		}
	}
	return nil, nil
}

// Flow implements source.Source. The source ignores requests to pause.
func (s *letterSource) Flow(source.Lane, bool) {}

// Close implements source.Source.
func (s *letterSource) Close(context.Context) error { return nil }
