package demo

import (
	"context"
	"errors"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/contract"
)

// source is the broker as Semel sees it. Its one lane lives as long as the
// process, and the broker's window is all the flow control it needs.
type source struct{ *client }

var lane = contract.Lane{ID: "payments", Epoch: 1}

func (s source) Lanes(o contract.LaneObserver) { o.Given(lane) }

func (s source) Fetch(ctx context.Context, most contract.Bound) ([]contract.Delivery, error) {
	taken, err := s.fetch(ctx, most.Messages)
	if errors.Is(err, errEnd) {
		return nil, contract.ErrEnd
	}
	var all []contract.Delivery
	for _, d := range taken {
		m := &semel.Message{Topic: lane.ID, Body: d.Body, Origin: semel.Origin{Partition: -1, Offset: int64(d.Position)}}
		all = append(all, contract.Delivery{Message: m, Lane: lane, Before: d.Before, Handle: d.Position})
	}
	return all, err
}

func (s source) Settle(_ context.Context, all []contract.Settlement) ([]int, error) {
	var r request
	for _, one := range all {
		position := one.Delivery.Handle.(int)
		if one.Kind == semel.Ack {
			r.Settle = append(r.Settle, position)
		} else {
			r.Back = append(r.Back, position)
		}
	}
	return nil, s.send(r)
}

func (s source) Flow(contract.Lane, bool) {}

func (s source) Close(context.Context) error { return nil }
