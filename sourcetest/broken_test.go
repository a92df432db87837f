package sourcetest

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/source"
)

// faults contains sources that break a law. The field seenBy is the case that must detect the fault.
var faults = []struct {
	name, seenBy string
	plant        func(*faultySource)
}{
	{"loses a message", "everything_is_delivered", fetched(func(b *faultySource, got []source.Delivery) []source.Delivery {
		return slices.DeleteFunc(got, func(d source.Delivery) bool { return number(d.Message) == 99 })
	})},
	{"repairs a body", "everything_is_delivered", fetched(func(b *faultySource, got []source.Delivery) []source.Delivery {
		for i := range got {
			m := *got[i].Message
			m.Body = append(slices.Clip(m.Body), '\n')
			got[i].Message = &m
		}
		return got
	})},
	{"loses the key", "everything_is_delivered", fetched(func(b *faultySource, got []source.Delivery) []source.Delivery {
		for i := range got {
			m := *got[i].Message
			m.Key = nil
			got[i].Message = &m
		}
		return got
	})},
	{"reverses a batch", "order_in_a_lane", fetched(func(b *faultySource, got []source.Delivery) []source.Delivery {
		slices.Reverse(got)
		return got
	})},
	{"gives no lane", "lanes_are_given_first", func(b *faultySource) { b.lanes = func(source.LaneObserver) {} }},
	{"ignores the bound of messages", "bounds", func(b *faultySource) {
		b.fetch = func(ctx context.Context, most source.Bound) ([]source.Delivery, error) {
			return b.Memory.Fetch(ctx, source.Bound{Messages: 1000, Bytes: most.Bytes})
		}
	}},
	{"ignores the bound of bytes", "bounds", func(b *faultySource) {
		b.fetch = func(ctx context.Context, most source.Bound) ([]source.Delivery, error) {
			return b.Memory.Fetch(ctx, source.Bound{Messages: most.Messages, Bytes: 1 << 30})
		}
	}},
	{"never returns what is larger than the bound", "bounds", fetched(func(b *faultySource, got []source.Delivery) []source.Delivery {
		return slices.DeleteFunc(got, func(d source.Delivery) bool { return len(d.Message.Body) > 100_000 })
	})},
	{"looks once only", "what_comes_later", func(b *faultySource) {
		looked := false
		b.fetch = func(ctx context.Context, most source.Bound) ([]source.Delivery, error) {
			if looked {
				<-ctx.Done()
				return nil, nil
			}
			looked = true
			return b.Memory.Fetch(ctx, most)
		}
	}},
	{"loses fetched messages when the context ends", "context_end_loses_nothing", func(b *faultySource) {
		b.fetch = func(ctx context.Context, most source.Bound) ([]source.Delivery, error) {
			if ctx.Err() != nil {
				_, _ = b.Memory.Fetch(context.WithoutCancel(ctx), most)
			}
			return b.Memory.Fetch(ctx, most)
		}
	}},
	{"returns the context's error", "waiting_ends_with_the_context", func(b *faultySource) {
		b.fetch = func(ctx context.Context, most source.Bound) ([]source.Delivery, error) {
			got, err := b.Memory.Fetch(ctx, most)
			return got, errors.Join(err, ctx.Err())
		}
	}},
	{"does not end with the context", "waiting_ends_with_the_context", func(b *faultySource) {
		b.fetch = func(ctx context.Context, most source.Bound) ([]source.Delivery, error) {
			late, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
			defer cancel()
			return b.Memory.Fetch(late, most)
		}
	}},
	{"settles after the Fetch", "settle_beside_fetch", func(b *faultySource) {
		busy := make(chan struct{}, 1)
		b.fetch = func(ctx context.Context, most source.Bound) ([]source.Delivery, error) {
			busy <- struct{}{}
			defer func() { <-busy }()
			return b.Memory.Fetch(ctx, most)
		}
		b.settle = func(ctx context.Context, all []source.Settlement) ([]int, error) {
			busy <- struct{}{}
			defer func() { <-busy }()
			return b.Memory.Settle(ctx, all)
		}
	}},
	{"ends while a message is unsettled", "end", func(b *faultySource) {
		taken := 0
		b.fetch = func(ctx context.Context, most source.Bound) ([]source.Delivery, error) {
			got, err := b.Memory.Fetch(ctx, most)
			if taken += len(got); taken >= 5 {
				err = source.ErrEnd
			}
			return got, err
		}
	}},
	{"never ends", "end", func(b *faultySource) {
		b.fetch = func(ctx context.Context, most source.Bound) ([]source.Delivery, error) {
			got, err := b.Memory.Fetch(ctx, most)
			if errors.Is(err, source.ErrEnd) {
				<-ctx.Done()
				return nil, nil
			}
			return got, err
		}
	}},
	{"delivers after Close", "after_close", func(b *faultySource) {
		b.fetch = func(ctx context.Context, most source.Bound) ([]source.Delivery, error) {
			got, err := b.Memory.Fetch(ctx, most)
			if errors.Is(err, semel.ErrClosed) {
				l := &b.Memory.lanes[0]
				return []source.Delivery{{Message: l.blocks[0].slots[0].message, Lane: l.id, Before: 1}}, nil
			}
			return got, err
		}
	}},
	{"acknowledges when it delivers", "unsettled_comes_again", fetched(func(b *faultySource, got []source.Delivery) []source.Delivery {
		b.acknowledge(context.Background(), got...)
		return got
	})},
	{"forgets settlements", "settled_stays_away", func(b *faultySource) {
		b.settle = func(context.Context, []source.Settlement) ([]int, error) { return nil, nil }
	}},
	{"acknowledges cumulatively", "out_of_order_settlement", func(b *faultySource) {
		var all []source.Delivery
		fetched(func(_ *faultySource, got []source.Delivery) []source.Delivery {
			all = append(all, got...)
			return got
		})(b)
		b.settle = func(ctx context.Context, some []source.Settlement) ([]int, error) {
			for _, s := range some {
				b.acknowledge(ctx, slices.DeleteFunc(slices.Clone(all), func(d source.Delivery) bool {
					return d.Lane != s.Delivery.Lane || number(d.Message) > number(s.Delivery.Message)
				})...)
			}
			return nil, nil
		}
	}},
	{"drops a nacked message", "handed_back_comes_again", settledAs(func(b *faultySource, s source.Settlement) source.Settlement {
		s.Kind = semel.Ack
		return s
	})},
	{"redelivers a delayed nack at once", "handed_back_waits", settledAs(func(b *faultySource, s source.Settlement) source.Settlement {
		s.After = 0
		return s
	})},
	{"a delayed nack delays everything", "handed_back_waits", settledAs(func(b *faultySource, s source.Settlement) source.Settlement {
		if s.Kind == semel.Nack {
			s.After = max(s.After, 2*time.Second)
		}
		return s
	})},
	{"loses nacked messages at Close", "handed_back_survives", settledAs(func(b *faultySource, s source.Settlement) source.Settlement {
		if s.After >= time.Hour {
			s.Kind = semel.Ack
		}
		return s
	})},
	{"acknowledges dead letters", "dead_letters_are_copies_and_not_acknowledged", func(b *faultySource) {
		b.settle = func(ctx context.Context, all []source.Settlement) ([]int, error) {
			if all[0].Kind == semel.DeadLetter {
				b.acknowledge(ctx, *all[0].Delivery)
			}
			return b.Memory.Settle(ctx, all)
		}
	}},
	{"reports dead letters without writing them", "dead_letters_are_copies_and_not_acknowledged", func(b *faultySource) {
		b.settle = func(ctx context.Context, all []source.Settlement) ([]int, error) {
			if all[0].Kind == semel.DeadLetter {
				return nil, nil
			}
			return b.Memory.Settle(ctx, all)
		}
	}},
	{"reports a quiet broker as unreachable", "waiting_ends_with_the_context", func(b *faultySource) {
		b.fetch = func(ctx context.Context, most source.Bound) ([]source.Delivery, error) {
			got, err := b.Memory.Fetch(ctx, most)
			if len(got) == 0 && err == nil {
				err = ctx.Err()
			}
			return got, err
		}
	}},
	{"makes dead letters without their key", "dead_letters_are_copies_and_not_acknowledged", settledAs(func(b *faultySource, s source.Settlement) source.Settlement {
		if s.Kind == semel.DeadLetter {
			m := *s.Delivery.Message
			m.Key = nil
			d := *s.Delivery
			d.Message = &m
			s.Delivery = &d
		}
		return s
	})},
	{"settles in a revoked lane", "lost_lanes", settledAs(func(b *faultySource, s source.Settlement) source.Settlement {
		d := *s.Delivery
		d.Lane.Epoch = b.Memory.epoch
		s.Delivery = &d
		return s
	})},
	{"fails for a revoked lane", "lost_lanes", func(b *faultySource) {
		b.settle = func(ctx context.Context, all []source.Settlement) ([]int, error) {
			if all[0].Delivery.Lane.Epoch != b.Memory.epoch {
				return []int{0}, errors.New("not mine")
			}
			return b.Memory.Settle(ctx, all)
		}
	}},
	{"always reports a first delivery", "deliveries_are_counted", fetched(func(b *faultySource, got []source.Delivery) []source.Delivery {
		for i := range got {
			got[i].Before = 0
		}
		return got
	})},
	{"cannot pause", "pause_and_resume", func(b *faultySource) { b.flow = func(source.Lane, bool) {} }},
	{"pauses all lanes", "pause_and_resume", func(b *faultySource) {
		b.flow = func(_ source.Lane, on bool) {
			for i := range b.Memory.lanes {
				b.Memory.Flow(b.Memory.lanes[i].id, on)
			}
		}
	}},
	{"is idle after the first delivery", "idle_when_everything_is_delivered", func(b *faultySource) {
		b.idle = func() bool { return true }
	}},
	{"is never idle", "idle_when_everything_is_delivered", func(b *faultySource) {
		b.idle = func() bool { return false }
	}},
	{"reports delivered messages as settled", "ages_are_of_what_is_not_settled", agesAs(func(l *source.LaneAge) { l.Oldest = time.Time{} })},
	{"never reports a lane as settled", "ages_are_of_what_is_not_settled", agesAs(func(l *source.LaneAge) {
		if l.Oldest.IsZero() {
			l.Oldest = time.Now()
		}
	})},
	{"tells another time", "ages_are_of_what_is_not_settled", agesAs(func(l *source.LaneAge) {
		if !l.Oldest.IsZero() {
			l.Oldest = l.Oldest.Add(-time.Minute)
		}
	})},
	{"names no lanes", "ages_are_of_what_is_not_settled", func(b *faultySource) {
		b.ages = func([]source.LaneAge) []source.LaneAge { return nil }
	}},
	{"cannot resume", "flow_loses_nothing", func(b *faultySource) {
		b.flow = func(l source.Lane, _ bool) { b.Memory.Flow(l, false) }
	}},
}

// agesAs returns a fault: the function f changes each lane in the result of Ages.
func agesAs(f func(*source.LaneAge)) func(*faultySource) {
	return func(b *faultySource) {
		b.ages = func(all []source.LaneAge) []source.LaneAge {
			for i := range all {
				f(&all[i])
			}
			return all
		}
	}
}

func full() Can {
	return Can{
		Lanes: 3, Live: true, Whole: true, Ordered: true, Reopens: true, Remembers: true,
		HandsBack: true, Delays: true, Counts: true, Pauses: true, DeadLetters: true, Idles: true, Dated: true, Ends: true,
	}
}

func TestEveryLawIsBrokenBySomeSourceAndTheSuiteSeesIt(t *testing.T) {
	cases := map[string]Case{}
	unbroken := map[string]bool{}
	for _, c := range Cases() {
		cases[c.Name], unbroken[c.Name] = c, true
	}
	for _, f := range faults {
		t.Run("a source that "+f.name, func(t *testing.T) {
			h := Harness{Can: full(), Virtual: true, Start: func(testing.TB) Broker {
				b := &faultySource{Memory: NewMemory(3)}
				f.plant(b)
				return b
			}}
			if err := cases[f.seenBy].Check(t, h); err == nil {
				t.Errorf("the case %s did not detect the fault", f.seenBy)
			}
			delete(unbroken, f.seenBy)
		})
	}
	for name := range unbroken {
		t.Errorf("no broken source violates the law of %s: the case may be unable to fail", name)
	}
}

// poor is a source without optional features.
type poor struct{ *Memory }

func (p poor) Open() (source.Source, error) {
	_, err := p.Memory.Open()
	return p, err
}

func (p poor) Fetch(ctx context.Context, most source.Bound) ([]source.Delivery, error) {
	got, err := p.Memory.Fetch(ctx, most)
	for i := range got {
		got[i].Before = source.Unknown
	}
	return got, err
}

func (p poor) Settle(ctx context.Context, all []source.Settlement) ([]int, error) {
	if all[0].Kind == semel.Nack {
		return []int{0}, semel.ErrUnsupported
	}
	return p.Memory.Settle(ctx, all)
}

func (p poor) Flow(source.Lane, bool) {}

func TestASourceThatCanDoTheLeastPasses(t *testing.T) {
	Run(t, Harness{
		Start: func(testing.TB) Broker { return poor{NewMemory(1)} },
		Can:   Can{Lanes: 1, Reopens: true}, Virtual: true,
	})
}

func TestWhatIsLessThanTheLeastIsRefused(t *testing.T) {
	for name, c := range map[string]Can{
		"no lane":                     {Reopens: true},
		"neither reopens nor returns": {Lanes: 1},
		"remembers without reopening": {Lanes: 1, HandsBack: true, Remembers: true},
		"delays without handing back": {Lanes: 1, Reopens: true, Delays: true},
	} {
		if c.minimum() == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
