package brokers

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/semel-go/semel/itest/ledger"
	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/topics"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Ledger is what came out.
type Ledger struct {
	// Records hold the events, with the producer's copies.
	Records int `json:"records"`
	ledger.Balance
	// Redelivered are deliveries beyond the records.
	Redelivered int `json:"redelivered"`
	proof.Offsets
	// Killed and Frozen are brokers.
	Killed  int           `json:"brokers_killed"`
	Frozen  int           `json:"brokers_frozen"`
	Seconds proof.Seconds `json:"seconds"`
}

// audit adds up from the brokers and the database.
func (r *run) audit(ctx context.Context) error {
	l := &r.ledger
	published := map[string]bool{}
	r.kafka.Each(r.topic, func(record *kgo.Record) {
		l.Records++
		published[topics.Header(record, "id")] = true
	})
	effects, err := ledger.Effects(ctx, r.db, "id")
	if err != nil {
		return err
	}
	l.Balance = ledger.Weigh(effects, maps.Keys(published), 0)
	if l.Offsets, err = r.watch.Audit(ctx); err != nil {
		return err
	}
	l.Redelivered = int(r.members.Counts().Deliveries) - l.Records
	l.Seconds = proof.Seconds(time.Since(r.began).Seconds())
	if l.Expected != r.sent {
		return fmt.Errorf("the topic holds %d of %d events that the brokers confirmed", l.Expected, r.sent)
	}
	return nil
}

// Wrong implements proof.Ledger.
func (l Ledger) Wrong() error { return cmp.Or(l.Balance.Wrong(), l.Offsets.Wrong()) }

// Fault implements proof.Ledger.
func (l Ledger) Fault() error {
	return cmp.Or(
		l.Wrong(),
		ledger.AtLeast(1, l.Killed, "brokers were killed"),
		ledger.AtLeast(1, l.Frozen, "brokers were frozen"),
		ledger.AtLeast(20, l.Samples, "samples of the group's offsets"),
	)
}
