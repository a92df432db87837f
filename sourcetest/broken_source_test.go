package sourcetest

import (
	"context"
	"slices"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/source"
)

// faultySource is a Memory with a fault: each field that is set replaces a method of the Memory.
type faultySource struct {
	*Memory
	fetch  func(ctx context.Context, most source.Bound) ([]source.Delivery, error)
	settle func(ctx context.Context, all []source.Settlement) ([]int, error)
	flow   func(l source.Lane, on bool)
	lanes  func(o source.LaneObserver)
	idle   func() bool
	ages   func([]source.LaneAge) []source.LaneAge
}

// Info implements source.Source.
func (b *faultySource) Info() source.Info {
	info := b.Memory.Info()
	info.Ages = b.agesOfLanes
	if b.idle != nil {
		info.Idle = func(context.Context) (bool, []semel.Unfinished, error) { return b.idle(), nil, nil }
	}
	return info
}

func (b *faultySource) agesOfLanes() ([]source.LaneAge, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []source.LaneAge
	for i := range b.Memory.lanes {
		age := source.LaneAge{Lane: b.Memory.lanes[i].id.ID}
		for _, block := range b.Memory.lanes[i].blocks {
			for j := range block.slots {
				if s := &block.slots[j]; s.state != settled && age.Oldest.IsZero() {
					age.Oldest = s.message.Origin.Time()
				}
			}
		}
		all = append(all, age)
	}
	if b.ages != nil {
		all = b.ages(all)
	}
	return all, true
}

func (b *faultySource) Open() (source.Source, error) {
	_, err := b.Memory.Open()
	return b, err
}

func (b *faultySource) Fetch(ctx context.Context, most source.Bound) ([]source.Delivery, error) {
	if b.fetch != nil {
		return b.fetch(ctx, most)
	}
	return b.Memory.Fetch(ctx, most)
}

func (b *faultySource) Settle(ctx context.Context, all []source.Settlement) ([]int, error) {
	if b.settle != nil {
		return b.settle(ctx, all)
	}
	return b.Memory.Settle(ctx, all)
}

func (b *faultySource) Flow(l source.Lane, on bool) {
	if b.flow != nil {
		b.flow(l, on)
		return
	}
	b.Memory.Flow(l, on)
}

func (b *faultySource) Lanes(o source.LaneObserver) {
	if b.lanes != nil {
		b.lanes(o)
		return
	}
	b.Memory.Lanes(o)
}

// acknowledge acks deliveries in the Memory without the knowledge of the test suite.
func (b *faultySource) acknowledge(ctx context.Context, all ...source.Delivery) {
	for i := range all {
		_, _ = b.Memory.Settle(ctx, []source.Settlement{{Delivery: &all[i], Kind: semel.Ack}})
	}
}

// fetched returns a fault: Fetch returns the deliveries that the function f makes of the right deliveries.
func fetched(f func(b *faultySource, got []source.Delivery) []source.Delivery) func(*faultySource) {
	return func(b *faultySource) {
		b.fetch = func(ctx context.Context, most source.Bound) ([]source.Delivery, error) {
			got, err := b.Memory.Fetch(ctx, most)
			return f(b, got), err
		}
	}
}

// settledAs returns a fault: before Settle, the function f changes each settlement (ack, nack or dead letter).
func settledAs(f func(b *faultySource, s source.Settlement) source.Settlement) func(*faultySource) {
	return func(b *faultySource) {
		b.settle = func(ctx context.Context, all []source.Settlement) ([]int, error) {
			changed := slices.Clone(all)
			for i := range changed {
				changed[i] = f(b, changed[i])
			}
			return b.Memory.Settle(ctx, changed)
		}
	}
}
