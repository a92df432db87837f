package proof

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/eventkind"
	"github.com/semel-go/semel/itest/proof/ledger"
	"github.com/semel-go/semel/itest/worlds/workload"
	"github.com/semel-go/semel/source"
)

// Rivals are two consumers with the same name in this process. Each of them gets all messages of a feed.
type Rivals struct {
	*Consumers
	Driver workload.Driver
	Feed   *workload.Feed
	DSN    string
	// Workers is the number of workers of each consumer. Most is the maximum number of messages in a batch.
	Workers, Most int
	// LookUp plants a fault: see workload.Options.
	LookUp func(ctx context.Context, id []byte) (bool, error)

	applied, unknown, notReady atomic.Int64
	sources                    []*workload.Source
	began                      time.Time
}

// Start starts both consumers.
func (r *Rivals) Start(ctx context.Context) error {
	r.Consumers, r.began = NewConsumers(ctx, 2), time.Now()
	for n, name := range []string{"first", "second"} {
		src := r.Feed.Source(uint64(n))
		r.sources = append(r.sources, src)
		c := workload.Config(src)
		c.Workers, c.Batch.MaxSize, c.MaxInMemoryWait = r.Workers, r.Most, time.Second
		c.MaxUnacked = source.Bound{Messages: 512, Bytes: 1 << 20}
		c.Observers = []semel.Observer{r}
		if err := r.Add(r.Driver, workload.Options{DSN: r.DSN, Connections: r.Workers + 2, Handler: workload.Effect(name), Config: c, LookUp: r.LookUp}); err != nil {
			return errors.Join(err, r.End())
		}
	}
	return nil
}

// Applied is the number of messages in commits whose success the consumers reported.
func (r *Rivals) Applied() int { return int(r.applied.Load()) }

// Observe implements semel.Observer.
func (r *Rivals) Observe(e semel.Event) {
	switch e.Kind {
	case eventkind.Committed:
		r.applied.Add(int64(e.Messages))
	case eventkind.Unknown:
		r.unknown.Add(1)
	case semel.EventNotReady:
		r.notReady.Add(1)
	}
}

// RivalsLedger is the part of the ledger that the proofs with Rivals share.
type RivalsLedger struct {
	Driver string `json:"driver"`
	ledger.Balance
	// Markers is the number of markers with the outcome applied.
	Markers int `json:"markers"`
	// SetAside is the number of inbox rows. Unsettled is the number of deliveries that were not acknowledged
	// at the two sources.
	SetAside  int `json:"set_aside"`
	Unsettled int `json:"not_settled"`
	// Duplicates is the number of deliveries whose message had been applied before.
	Duplicates int `json:"duplicates_absorbed"`
	// Unknown is the number of batches whose commit the consumers reported as unknown. NotReady is how often
	// the consumers reported that the store is down.
	Unknown  int `json:"batches_whose_commit_was_unknown"`
	NotReady int `json:"times_the_store_was_called_down"`
	// First and Second are the numbers of effects of the two consumers.
	First   int     `json:"applied_by_the_first_consumer"`
	Second  int     `json:"applied_by_the_second_consumer"`
	Seconds Seconds `json:"seconds"`
}

// Audit computes the ledger. Call it after both consumers have ended.
func (r *Rivals) Audit(ctx context.Context, db *sql.DB, l *RivalsLedger) error {
	l.Driver, l.Seconds = r.Driver.Name, Seconds(time.Since(r.began).Seconds())
	l.Unknown, l.NotReady, l.Duplicates = int(r.unknown.Load()), int(r.notReady.Load()), int(r.Counts().Duplicates)
	for _, s := range r.sources {
		l.Unsettled += r.Feed.Issued() - s.Settled(semel.Ack)
	}
	effects, err := ledger.Effects(ctx, db, "id")
	if err != nil {
		return err
	}
	l.Balance = ledger.Weigh(effects, r.Feed.IDs(), 0)
	return db.QueryRowContext(ctx, `
		select count(*) filter (where worker = 'first'), count(*) filter (where worker = 'second'),
			(select count(*) from semel_markers where outcome = 1), (select count(*) from semel_inbox)
		from effects`).Scan(&l.First, &l.Second, &l.Markers, &l.SetAside)
}

// Fault returns the error of Wrong, or an error if the consumers have not done all their work.
func (l RivalsLedger) Fault() error {
	switch err := l.Wrong(); {
	case err != nil:
		return err
	case l.SetAside != 0 || l.Unsettled != 0:
		return fmt.Errorf("parked %d, not settled %d", l.SetAside, l.Unsettled)
	case l.Markers != l.Applied:
		return fmt.Errorf("%d markers have the result applied, but %d messages are applied", l.Markers, l.Applied)
	}
	return nil
}
