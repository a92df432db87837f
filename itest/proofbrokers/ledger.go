package proofbrokers

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/semel-go/semel/itest/ledger"
	"github.com/semel-go/semel/itest/topics"
)

// Ledger is what came out.
type Ledger struct {
	// Events were published in Records.
	Events, Records int
	// Applied are events with an effect. Lost have none and are nowhere else,
	// Doubled are effects beyond the first, Strange effects of no event, Stuck
	// records that the group has not settled.
	Applied, Lost, Doubled, Strange, Stuck int
	// Redelivered are deliveries beyond the records.
	Redelivered int
	// Killed and Frozen are brokers.
	Killed, Frozen int
	// Samples are looks at the group's offsets, Backwards what went back.
	Samples   int
	Backwards []string
	Seconds   float64
}

// audit adds up from the brokers and the database.
func (r *run) audit(ctx context.Context) error {
	l := &r.ledger
	l.Samples, l.Backwards = r.watch.samples, r.watch.backwards
	published := map[string]bool{}
	for _, record := range r.kafka.Read(r.topic) {
		l.Records++
		published[topics.Header(record, "id")] = true
	}
	l.Events = len(published)
	rows, err := r.db.QueryContext(ctx, `select id, count(*) from effects group by id`)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var id string
		var n int
		if err := rows.Scan(&id, &n); err != nil {
			return err
		}
		if !published[id] {
			l.Strange++
			continue
		}
		l.Applied++
		l.Doubled += n - 1
	}
	if err := rows.Err(); err != nil {
		return err
	}
	l.Lost = l.Events - l.Applied
	l.Stuck = int(r.behind(ctx))
	l.Redelivered = int(r.fleet.counts().Deliveries) - l.Records
	l.Seconds = time.Since(r.began).Seconds()
	if l.Events != r.feed.sent {
		return fmt.Errorf("the topic holds %d of %d events that the brokers confirmed", l.Events, r.feed.sent)
	}
	return nil
}

// Fault says why the ledger is no proof; nil if it is one.
func (l Ledger) Fault() error {
	switch {
	case l.Lost != 0 || l.Doubled != 0 || l.Stuck != 0 || l.Strange != 0:
		return fmt.Errorf("lost %d, doubled %d, stuck %d, strange %d", l.Lost, l.Doubled, l.Stuck, l.Strange)
	case len(l.Backwards) > 0:
		return fmt.Errorf("the group's offsets went back: %v", l.Backwards)
	case l.Killed == 0 || l.Frozen == 0 || l.Samples < 20:
		return fmt.Errorf("%d brokers were killed, %d frozen, the offsets seen %d times: no proof", l.Killed, l.Frozen, l.Samples)
	}
	return nil
}

// Write prints the ledger for people.
func (l Ledger) Write(w io.Writer) error {
	return ledger.WriteTable(w, []ledger.Line{
		{"events", l.Events},
		{"records, with the producer's copies", l.Records},
		{"applied", l.Applied},
		{"lost", l.Lost},
		{"doubled", l.Doubled},
		{"stuck", l.Stuck},
		{"effects of no event", l.Strange},
		{"redelivered", l.Redelivered},
		{"brokers killed", l.Killed},
		{"brokers frozen", l.Frozen},
		{"looks at the group's offsets", l.Samples},
		{"offsets that went back", len(l.Backwards)},
		{"seconds", fmt.Sprintf("%.1f", l.Seconds)},
	})
}
