package operate

import (
	"context"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/contract"
)

// FirstView is what is known of the content that came first under the identity
// of a conflict. A marker says what became of it and when; where it came from is
// known only if it has a row, too.
type FirstView struct {
	Outcome string    `json:"outcome"`
	At      time.Time `json:"at"`
	// Row is the number of its row, 0 if it has none.
	Row       int64     `json:"row,omitempty"`
	Received  time.Time `json:"received_at,omitzero"`
	Topic     string    `json:"topic,omitempty"`
	Partition int32     `json:"partition"`
	Offset    int64     `json:"offset"`
}

// outcomes names what became of a message, as the summary does.
var outcomes = map[contract.Outcome]string{
	contract.Applied: "applied", contract.Waiting: "waiting", contract.Parked: "parked", contract.DeadLettered: "dead-lettered", contract.Discarded: "discarded",
}

// firstContent looks up what the rows of a conflict are in conflict with; nil if
// that is not known.
func (b Box) firstContent(ctx context.Context, key semel.Key) (*FirstView, error) {
	first, err := b.marked(ctx, key)
	if err != nil {
		return nil, err
	}
	for row, err := range b.Rows(ctx, contract.RowFilter{Consumer: key.Consumer, ID: key.ID}) {
		if err != nil {
			return nil, err
		}
		if row.Conflict || row.Key != key {
			continue
		}
		if first == nil {
			first = &FirstView{Outcome: outcomes[row.State.Outcome()], At: row.ChangedAt}
		}
		first.Row, first.Received = row.Number, row.ReceivedAt
		if m := row.Message; m != nil {
			first.Topic, first.Partition, first.Offset = m.Topic, m.Origin.Partition, m.Origin.Offset
		}
	}
	return first, nil
}

func (b Box) marked(ctx context.Context, key semel.Key) (*FirstView, error) {
	if b.Markers == nil {
		return nil, nil
	}
	m, found, err := b.Markers.Marker(ctx, key)
	if err != nil || !found {
		return nil, err
	}
	outcome := outcomes[m.Outcome]
	if outcome == "" {
		outcome = "unknown to this release"
	}
	return &FirstView{Outcome: outcome, At: m.At, Partition: -1, Offset: -1}, nil
}
