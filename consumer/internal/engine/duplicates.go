package engine

import (
	"context"
	"fmt"
	"slices"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer/internal/delivery"
	"github.com/semel-go/semel/consumer/internal/guard"
	"github.com/semel-go/semel/internal/legible"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/source"
)

// hold handles the duplicates of a queue as the policy says: hold sends their intents again and calls OnDuplicate. If
// one of these actions fails, the duplicate must not be acked yet; hold returns the indexes of such duplicates in
// ascending order.
func (s *settler) hold(ctx context.Context, queue []*machine.Settle) (held []int, why error) {
	if s.config.OnDuplicate == nil && !s.config.ReEmit {
		return nil, nil
	}
	var places []int
	var items []*machine.Item
	n := 0
	for _, q := range queue {
		for i := range q.Items {
			if q.Items[i].Kind == semel.Ack && q.Items[i].Ending == source.EndDuplicate {
				places, items = append(places, n), append(items, q.Items[i].Item)
			}
			n++
		}
	}
	if len(items) == 0 {
		return nil, nil
	}
	if s.config.ReEmit {
		if err := s.emit(ctx, resultsOf(items)); err != nil {
			return places, fmt.Errorf("what duplicates caused cannot be sent again: %w", err)
		}
	}
	if s.config.OnDuplicate == nil {
		return nil, nil
	}
	results, err := s.results(ctx, resultsOf(items))
	if err != nil {
		return places, fmt.Errorf("the results of duplicates cannot be read: %w", err)
	}
	for i, it := range items {
		if err := s.callOnDuplicate(ctx, &it.Handle.(*delivery.Delivery).Message, results[i]); err != nil {
			held, why = append(held, places[i]), fmt.Errorf("OnDuplicate: %w", err)
		}
	}
	return held, why
}

func resultsOf(items []*machine.Item) []resultOf {
	of := make([]resultOf, len(items))
	for i, it := range items {
		of[i] = resultOf{source: it.Source, id: it.Identity}
		if it.Former != nil {
			of[i].former = &semel.Key{Source: it.Former.Source, ID: it.Former.Identity}
		}
	}
	return of
}

// callOnDuplicate calls Config.OnDuplicate. callOnDuplicate returns an error if OnDuplicate panics, or if ctx had ended
// before the call.
func (s *settler) callOnDuplicate(ctx context.Context, m *semel.Message, result []byte) (err error) {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	defer func() {
		if value := recover(); value != nil {
			guard.LogPanic(s.config.Logger, s.config.Consumer, "OnDuplicate", value)
			err = fmt.Errorf("it panicked: %s", legible.Panic(value))
		}
	}()
	return guard.Readable(s.config.OnDuplicate(ctx, m, result))
}

// settlementBatch contains the acks, nacks and dead letters of a queue.
type settlementBatch struct {
	// settlements contains the settlements (acks, nacks and dead letters) that are passed to the source. The field
	// queueIndexes contains, for each settlement, its index in the queue. queueIndexes is nil if each settlement has
	// the same index in settlements and in the queue.
	settlements  []source.Settlement
	queueIndexes []int
}

// collectSettlements returns the acks, nacks and dead letters of a queue, without the deliveries in held, which must
// wait.
func (s *settler) collectSettlements(queue []*machine.Settle, held []int) settlementBatch {
	most, n, next := countSettlements(queue), 0, held
	out := settlementBatch{settlements: make([]source.Settlement, 0, most)}
	deliveries := make([]source.Delivery, most)
	for _, q := range queue {
		for i := range q.Items {
			n++
			if len(next) > 0 && next[0] == n-1 {
				next = next[1:]
				continue
			}
			item := &q.Items[i]
			d := &deliveries[len(out.settlements)]
			*d = item.Item.Handle.(*delivery.Delivery).Delivered()
			out.settlements = append(out.settlements, source.Settlement{Delivery: d, Kind: item.Kind, After: item.After, Ending: item.Ending, Reason: item.Reason, Charged: item.Charged,
				Attempts: item.Attempts, Err: item.Err})
			if len(held) > 0 {
				out.queueIndexes = append(out.queueIndexes, n-1)
			}
		}
	}
	return out
}

// waitingIndexes returns, in ascending order, the queue's indexes of all deliveries that must wait. The parameter left
// contains indexes in s.settlements, and the parameter held contains indexes in the queue.
func (s *settlementBatch) waitingIndexes(left, held []int) []int {
	all := slices.Clone(held)
	for _, i := range left {
		if s.queueIndexes != nil {
			i = s.queueIndexes[i]
		}
		all = append(all, i)
	}
	slices.Sort(all)
	return slices.Compact(all)
}
