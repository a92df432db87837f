package sources

import (
	"context"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/source"
)

// None is the source of a consumer that only processes its inbox. None delivers nothing. If Ends is true, the source
// ends at once. If Ends is false, the source ends when the run ends.
type None struct{ Ends bool }

// Info implements source.Source. Info accepts the use of dead letters although None has none, because a
// claimed row is parked instead.
func (s None) Info() source.Info {
	return source.Info{
		Bounded: s.Ends, AtEnd: func() bool { return s.Ends },
		Idle:        func(context.Context) (bool, []semel.Unfinished, error) { return true, nil, nil },
		DeadLetters: func(string) error { return nil },
	}
}

// Lanes implements source.Source.
func (None) Lanes(o source.LaneObserver) { o.Given(source.Lane{ID: "semel:none", Epoch: 1}) }

// Fetch implements source.Source.
func (s None) Fetch(ctx context.Context, _ source.Bound) ([]source.Delivery, error) {
	if s.Ends {
		return nil, source.ErrEnd
	}
	<-ctx.Done()
	return nil, nil
}

// Settle implements source.Source.
func (None) Settle(context.Context, []source.Settlement) ([]int, error) { return nil, nil }

// Flow implements source.Source.
func (None) Flow(source.Lane, bool) {}

// Close implements source.Source.
func (None) Close(context.Context) error { return nil }
