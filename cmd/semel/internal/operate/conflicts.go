package operate

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/store"
)

// rowsToSkip returns the rows that a command for many rows skips, with the reason. A conflict is not
// retried while the row with the first content of its identity is unfinished. To retry the conflict, a person
// decides which content is right and gives the row's number.
func (b Box) rowsToSkip(ctx context.Context, o Order, rows []allowedRow) (map[int64]string, error) {
	if o.Verb != admin.Retry && o.Verb != admin.Send || len(o.Filter.Numbers) > 0 && !o.Counted {
		return nil, nil
	}
	ids, conflicts := map[string][]string{}, map[semel.Key][]int64{}
	for _, a := range rows {
		if key := a.row.Key; a.row.Conflict {
			ids[key.Consumer] = append(ids[key.Consumer], key.ID)
			conflicts[key] = append(conflicts[key], a.row.Number)
		}
	}
	left := map[int64]string{}
	for consumer, of := range ids {
		for first, err := range b.Rows(ctx, store.RowFilter{Consumer: consumer, IDs: of}) {
			if err != nil {
				return nil, err
			}
			if first.Conflict || first.State == store.StateCompleted || first.State == store.StateDiscarded {
				continue
			}
			for _, n := range conflicts[first.Key] {
				left[n] = fmt.Sprintf("row %d has the first content of this identity and is %s; find out which is right, and discard that row or retry this one by its number", first.Number, admin.StateOf(first.State))
			}
		}
	}
	return left, nil
}

// FirstView describes the content that was received first, for a row that conflicts with this content. The
// outcome and the time of the first content come from the marker. The origin is known only if the first
// content has a row.
type FirstView struct {
	Outcome string    `json:"outcome"`
	At      time.Time `json:"at"`
	// Row is the number of the row with the first content, or 0 if there is no such row.
	Row       int64     `json:"row,omitempty"`
	Received  time.Time `json:"received_at,omitzero"`
	Topic     string    `json:"topic,omitempty"`
	Partition int32     `json:"partition"`
	Offset    int64     `json:"offset"`
}

// outcomes maps outcomes to the names that a run's summary uses.
var outcomes = map[store.Outcome]string{
	store.Applied: "applied", store.Waiting: "waiting", store.Parked: "parked", store.DeadLettered: "dead-lettered", store.Discarded: "discarded",
}

// firstContent returns the content with which a conflict disagrees, or nil if that content is unknown. The
// marker describes the first content. If a person released the conflict for processing, the marker describes
// the content of the conflict, not the first content.
func (b Box) firstContent(ctx context.Context, key semel.Key) (*FirstView, error) {
	var first *store.StoredRow
	var all []store.StoredRow
	for row, err := range b.Rows(ctx, store.RowFilter{Consumer: key.Consumer, IDs: []string{key.ID}}) {
		if err != nil {
			return nil, err
		}
		if row.Key == key {
			all = append(all, row)
		}
	}
	for i := range all {
		if !all[i].Conflict {
			first = &all[i]
		}
	}
	var view *FirstView
	if b.Markers != nil {
		m, found, err := b.Markers.Marker(ctx, key)
		if err != nil {
			return nil, err
		}
		if owner := m.Owner(all); found && (owner == nil && first == nil || owner != nil && !owner.Conflict) {
			view = &FirstView{Outcome: cmp.Or(outcomes[m.Outcome], "unknown to this release"), At: m.At, Partition: -1, Offset: -1}
		}
	}
	if first == nil {
		return view, nil
	}
	if view == nil {
		view = &FirstView{Outcome: outcomes[first.State.Outcome()], At: first.ChangedAt, Partition: -1, Offset: -1}
	}
	view.Row, view.Received = first.Number, first.ReceivedAt
	if m := first.Message; m != nil {
		view.Topic, view.Partition, view.Offset = m.Topic, m.Origin.Partition, m.Origin.Offset
	}
	return view, nil
}
