//go:build unix

package kafka

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/proof/ledger"
	"github.com/semel-go/semel/itest/services/topics"
	"github.com/semel-go/semel/itest/worlds/webhooks"
)

// Ledger is what came out. What is lost, doubled and stuck is read from the
// database and the broker alone.
type Ledger struct {
	// Events were published, each with an identity of its own. Records are
	// what the topic holds, all copies; Copies are those beyond the first of an
	// identity.
	Events  int `json:"events"`
	Records int `json:"records"`
	Copies  int `json:"copies_by_producers"`
	// Delivered are deliveries that the members counted, of one that was killed
	// those it had shown; Redelivered those beyond one for each record.
	Delivered   int64 `json:"delivered"`
	Redelivered int64 `json:"redelivered"`
	proof.Tally
	proof.Offsets
	proof.Accord
	// Resumed are freezes beyond the session time-out.
	Resumed int `json:"freezes_resumed"`
	// FrozenSeconds is when the server ended the transaction of the member that is frozen for
	// good.
	FrozenSeconds  proof.Seconds `json:"seconds_until_the_frozen_transaction_ended,omitempty"`
	Brokers        int           `json:"brokers"`
	BrokerRestarts int           `json:"broker_restarts"`
	BrokerFreezes  int           `json:"broker_freezes"`
	Added          int           `json:"members_added"`
	Removed        int           `json:"members_removed"`
	// Failed are runs of handlers that failed, Retried messages that were parked and
	// retried by a command, Refused writes that a token refused, Claims what was
	// taken over from others.
	Failed  int `json:"failed_runs,omitempty"`
	Retried int `json:"parked_and_retried,omitempty"`
	Refused int `json:"refused_by_token,omitempty"`
	// Placed are effects that came in their turn, Misplaced the others, Blocked rows that
	// waited for an earlier version, Filled streams of which a file brought what was
	// missing, Skipped such in which a command skipped what never came.
	Placed    int `json:"in_order,omitempty"`
	Misplaced int `json:"out_of_order,omitempty"`
	Blocked   int `json:"blocked,omitempty"`
	Filled    int `json:"gaps_filled,omitempty"`
	Skipped   int `json:"gaps_skipped,omitempty"`
	// Unheld are messages that waited although nothing held them back, for as long as the
	// group may take, or did not wait although something did.
	Unheld  int    `json:"waited_unheld,omitempty"`
	Planted string `json:"planted,omitempty"`
	least   Proof
}

// audit adds up from the broker and the database.
func (r *run) audit(ctx context.Context) (err error) {
	l := r.ledger
	r.inboxLedger()
	if r.Order {
		if l.Placed, l.Misplaced, err = r.inOrder(ctx); err != nil {
			return err
		}
		if err := r.Activity.DB.QueryRowContext(ctx, "select count(*) from semel_inbox where stream is not null or place > 1").Scan(&l.Blocked); err != nil {
			return err
		}
	}
	if l.Offsets, err = r.Watch.Audit(ctx); err != nil {
		return err
	}
	committed, err := r.Kafka.TryCommitted(ctx, group, topic)
	if err != nil {
		return err
	}
	settled := map[string]bool{} // by id: the group has passed a record of it
	r.Kafka.Each(topic, func(record *kgo.Record) {
		l.Records++
		id := topics.Header(record, "ce_id")
		settled[id] = settled[id] || record.Offset < committed[record.Partition]
	})
	l.Copies, l.Redelivered = l.Records-len(settled), max(l.Delivered-int64(l.Records), 0)
	for event, v := range r.places {
		if v.filled() {
			settled[webhooks.ID(event)] = true // it came from a file
		}
	}
	stuck, err := r.stuck(ctx, settled)
	if err != nil {
		return err
	}
	if err := l.Tally.Audit(ctx, r.Activity.DB, maps.Keys(settled), stuck, !r.plain()); err != nil || r.plain() {
		return err
	}
	return l.Accord.Hear(ctx, r.Activity.DB)
}

// stuck are messages that were set aside, or have no effect and are not settled.
func (r *run) stuck(ctx context.Context, settled map[string]bool) (stuck int, err error) {
	effects, err := ledger.Effects(ctx, r.Activity.DB, "delivery")
	if err != nil {
		return 0, err
	}
	if !r.plain() { // the plain loops have no such table
		if err := r.Activity.DB.QueryRowContext(ctx, `select count(*) from semel_inbox where state <> 'COMPLETED'`).Scan(&stuck); err != nil {
			return 0, err
		}
	}
	for id, is := range settled {
		if !is && effects[id] == 0 {
			stuck++
		}
	}
	return stuck, nil
}

// Wrong implements proof.Ledger.
func (l Ledger) Wrong() error {
	err := cmp.Or(l.Tally.Wrong(), l.Offsets.Wrong(), l.Accord.Wrong())
	if err == nil && l.Misplaced != 0 {
		err = fmt.Errorf("%d effects are out of their stream's order", l.Misplaced)
	}
	if err == nil && l.Unheld != 0 {
		err = fmt.Errorf("%d messages waited although nothing held them back, or did not although something did", l.Unheld)
	}
	return err
}

// Fault implements proof.Ledger. A kill fewer than were ordered is enough.
func (l Ledger) Fault() error {
	least := l.least
	handlersFail, gaps := least.Inbox || least.Order, least.Order && !least.Keys
	if least.ForGood && !l.Frozen {
		return cmp.Or(l.Wrong(), errors.New("no member stood still to the end: no proof"))
	}
	if least.ForGood && !least.Inbox && float64(l.FrozenSeconds) < idle.Seconds()-3 {
		return cmp.Or(l.Wrong(), fmt.Errorf("the transaction of the frozen member ended after %v s, by itself: no proof", l.FrozenSeconds))
	}
	return cmp.Or(
		l.Wrong(),
		ledger.AtLeast(l.Events, l.Expected, "identities in the topic"),
		ledger.AtLeast(least.Kills-1, l.Open, "kills in an open transaction"),
		ledger.AtLeast(least.Freezes, l.Resumed, "freezes that were resumed"),
		ledger.AtLeast(least.BrokerRestarts, l.BrokerRestarts, "restarts of a broker"),
		ledger.AtLeast(least.BrokerFreezes, l.BrokerFreezes, "freezes of a broker"),
		ledger.AtLeast(least.DatabaseRestarts, l.Restarts, "restarts of PostgreSQL"),
		ledger.AtLeast(least.Changes, l.Added, "members added"),
		ledger.AtLeast(least.Changes, l.Removed, "members removed"),
		ledger.AtLeast(least.Refused, l.Refused, "writes refused by their token"),
		ledger.AtLeast(when(handlersFail, poisoned), l.Retried, "messages parked and retried"),
		ledger.AtLeast(when(handlersFail, least.Events/150), l.Failed, "runs that failed"),
		ledger.AtLeast(when(least.Order, least.Events), l.Placed, "effects in their stream's order"),
		ledger.AtLeast(when(least.Order, least.Events/100), l.Blocked, "versions that waited for an earlier one"),
		ledger.AtLeast(when(gaps, filledStreams), l.Filled, "gaps filled from a file"),
		ledger.AtLeast(when(gaps, skippedStreams), l.Skipped, "gaps skipped"),
		ledger.AtLeast(int(least.Redelivered), int(l.Redelivered), "redeliveries"),
		ledger.AtLeast(int(l.Seconds), l.Samples, "samples of the group's offsets"),
	)
}

// when is how many there must be if the proof has any.
func when(is bool, n int) int {
	if is {
		return n
	}
	return 0
}
