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

// Ledger counts events, deliveries, effects and injected faults in one run of the fault test. The numbers of lost,
// doubled and stuck messages come only from the database and the broker.
type Ledger struct {
	// Events is the number of published events, each with its own identity. Records is the number of records
	// in the topic, including copies. Copies is the number of records beyond the first record of an
	// identity.
	Events  int `json:"events"`
	Records int `json:"records"`
	Copies  int `json:"copies_by_producers"`
	// Delivered is the number of deliveries that the members counted. For a killed member, the last displayed number
	// counts. Redelivered is the number of deliveries beyond one for each record.
	Delivered   int64 `json:"delivered"`
	Redelivered int64 `json:"redelivered"`
	proof.Tally
	proof.Offsets
	proof.Accord
	// Resumed is the number of members that continued after a freeze longer than the session timeout.
	Resumed int `json:"freezes_resumed"`
	// FrozenSeconds is the time from the freeze of the member that stays frozen until the server ended the member's
	// transaction.
	FrozenSeconds  proof.Seconds `json:"seconds_until_the_frozen_transaction_ended,omitempty"`
	Brokers        int           `json:"brokers"`
	BrokerRestarts int           `json:"broker_restarts"`
	BrokerFreezes  int           `json:"broker_freezes"`
	Added          int           `json:"members_added"`
	Removed        int           `json:"members_removed"`
	// Failed is the number of failed handler runs. Retried is the number of parked messages that a command
	// retried. Refused is the number of writes that the server rejected because of a token. Claims is the
	// number of claims that members took over from other members.
	Failed  int `json:"failed_runs,omitempty"`
	Retried int `json:"parked_and_retried,omitempty"`
	Refused int `json:"refused_by_token,omitempty"`
	// Placed is the number of effects in the order of their stream. Misplaced is the number of effects out of
	// this order. Blocked is the number of rows that waited for an earlier version. Filled is the number of
	// streams whose missing versions came from a file. Skipped is the number of streams in which a command
	// skipped missing versions.
	Placed    int `json:"in_order,omitempty"`
	Misplaced int `json:"out_of_order,omitempty"`
	Blocked   int `json:"blocked,omitempty"`
	Filled    int `json:"gaps_filled,omitempty"`
	Skipped   int `json:"gaps_skipped,omitempty"`
	// Unheld is the number of messages that waited without a reason, or that did not wait although they had a reason to
	// wait.
	Unheld  int    `json:"waited_unheld,omitempty"`
	Planted string `json:"planted,omitempty"`
	least   Proof
}

// audit computes the ledger from the broker and the database.
func (r *run) audit(ctx context.Context) {
	l := r.ledger
	r.inboxLedger()
	if r.Order {
		l.Placed, l.Misplaced = r.inOrder(ctx)
		l.Blocked = r.Count(ctx, "select count(*) from semel_inbox where stream is not null or place > 1")
	}
	l.Offsets = r.Watch.Audit(ctx)
	committed := proof.Must(r.Kafka.TryCommitted(ctx, group, topic))
	settled := map[string]bool{} // ids of messages for which the group has committed the offset of a record
	r.Kafka.Each(topic, func(record *kgo.Record) {
		l.Records++
		id := topics.Header(record, "ce_id")
		settled[id] = settled[id] || record.Offset < committed[record.Partition]
	})
	l.Copies, l.Redelivered = l.Records-len(settled), max(l.Delivered-int64(l.Records), 0)
	for event, v := range r.places {
		if v.isFilled() {
			settled[webhooks.ID(event)] = true // the event came from a file
		}
	}
	l.Tally.Audit(ctx, r.Activity.DB, maps.Keys(settled), r.countStuck(ctx, settled), !r.plain())
	if !r.plain() {
		l.Accord.Hear(ctx, r.Activity.DB)
	}
}

// countStuck counts messages that are parked, and messages that have no effect and are not in the map settled.
func (r *run) countStuck(ctx context.Context, settled map[string]bool) (stuck int) {
	effects := proof.Must(ledger.Effects(ctx, r.Activity.DB, "delivery"))
	if !r.plain() { // the plain loops have no inbox table
		stuck = r.Count(ctx, `select count(*) from semel_inbox where state <> 'COMPLETED'`)
	}
	for id, is := range settled {
		if !is && effects[id] == 0 {
			stuck++
		}
	}
	return stuck
}

// Wrong implements proof.Ledger.
func (l Ledger) Wrong() error {
	return cmp.Or(l.Tally.Wrong(), l.Offsets.Wrong(), l.Accord.Wrong(),
		ledger.None(l.Misplaced, "effects are out of their stream's order"),
		ledger.None(l.Unheld, "messages waited although nothing held them back, or did not wait although something did"))
}

// Fault implements proof.Ledger. Fault accepts one kill less than configured.
func (l Ledger) Fault() error {
	least := l.least
	handlersFail, gaps := least.Inbox || least.Order, least.Order && !least.Keys
	if least.ForGood && !l.Frozen {
		return cmp.Or(l.Wrong(), errors.New("no member stayed frozen to the end: no proof"))
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
		ledger.AtLeast(countIf(handlersFail, poisoned), l.Retried, "messages parked and retried"),
		ledger.AtLeast(countIf(handlersFail, least.Events/150), l.Failed, "runs that failed"),
		ledger.AtLeast(countIf(least.Order, least.Events), l.Placed, "effects in their stream's order"),
		ledger.AtLeast(countIf(least.Order, least.Events/100), l.Blocked, "versions that waited for an earlier one"),
		ledger.AtLeast(countIf(gaps, filledStreams), l.Filled, "gaps filled from a file"),
		ledger.AtLeast(countIf(gaps, skippedStreams), l.Skipped, "gaps skipped"),
		ledger.AtLeast(int(least.Redelivered), int(l.Redelivered), "redeliveries"),
		ledger.AtLeast(int(l.Seconds), l.Samples, "samples of the group's offsets"),
	)
}

// countIf returns n if the fault test includes a fault, otherwise 0.
func countIf(is bool, n int) int {
	if is {
		return n
	}
	return 0
}
