package demo

import (
	"context"
	"errors"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/source"
)

// brokerSource is a Semel source that reads from the broker. The source has one lane. The broker's window is
// the only flow control.
type brokerSource struct{ *client }

var lane = source.Lane{ID: "payments", Epoch: 1}

func (s brokerSource) Lanes(o source.LaneObserver) { o.Given(lane) }

func (s brokerSource) Fetch(ctx context.Context, most source.Bound) ([]source.Delivery, error) {
	taken, err := s.fetch(ctx, most.Messages)
	if errors.Is(err, errEnd) {
		return nil, source.ErrEnd
	}
	var all []source.Delivery
	for _, d := range taken {
		m := &semel.Message{Topic: lane.ID, Body: d.Body, Origin: semel.Origin{Partition: -1, Offset: int64(d.Position)}}
		all = append(all, source.Delivery{Message: m, Lane: lane, Before: d.Before, Handle: d.Position})
	}
	return all, err
}

func (s brokerSource) Settle(_ context.Context, all []source.Settlement) ([]int, error) {
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

// Info implements source.Source.
func (brokerSource) Info() source.Info { return source.Info{} }

func (s brokerSource) Flow(source.Lane, bool) {}

func (s brokerSource) Close(context.Context) error { return nil }
