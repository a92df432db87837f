package proof

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/eventkind"
	"github.com/semel-go/semel/itest/proof/ledger"
	"github.com/semel-go/semel/itest/worlds/workload"
	"github.com/semel-go/semel/source"
)

// Rivals has two consumers with the same name in this process. Each consumer gets all messages of a feed.
type Rivals struct {
	Driver workload.Driver
	Feed   *workload.Feed
	DSN    string
	// Workers is the number of workers of each consumer. Most is the maximum number of messages in a batch.
	Workers, Most int
	// LookUp adds a fault that the run must detect: see workload.Options.
	LookUp func(ctx context.Context, id []byte) (bool, error)
	// Over receives the errors with which the consumers ended.
	Over chan error

	applied, unknown, notReady atomic.Int64
	sources                    []*workload.Source
	consumers                  []workload.Consumer
	pools                      []func()
	stop                       context.CancelFunc
	group                      sync.WaitGroup
	began                      time.Time
}

// Start starts both consumers. Call End afterwards.
func (r *Rivals) Start(ctx context.Context) {
	r.Over, r.began = make(chan error, 2), time.Now()
	ctx, r.stop = context.WithCancel(ctx)
	for n, name := range []string{"first", "second"} {
		src := r.Feed.Source(uint64(n))
		r.sources = append(r.sources, src)
		c := workload.Config(src)
		c.Workers, c.Batch.MaxSize, c.MaxInMemoryWait = r.Workers, r.Most, time.Second
		c.MaxUnacked = source.Bound{Messages: 512, Bytes: 1 << 20}
		c.Observers = []semel.Observer{r}
		consumer, closePool, err := r.Driver.Open(workload.Options{DSN: r.DSN, Connections: r.Workers + 2, Handler: workload.Effect(name), Config: c, LookUp: r.LookUp})
		Check(err)
		r.consumers, r.pools = append(r.consumers, consumer), append(r.pools, closePool)
		r.group.Go(func() { r.Over <- consumer.Run(ctx) })
	}
}

// Ready reports whether both consumers are ready.
func (r *Rivals) Ready() bool {
	return !slices.ContainsFunc(r.consumers, func(c workload.Consumer) bool { ready, _ := c.Ready(); return !ready })
}

// End drains the consumers and returns the errors that Over has not received. End may be called
// again.
func (r *Rivals) End() (failed error) {
	r.stop()
	r.group.Wait()
	for _, closePool := range r.pools {
		closePool()
	}
	r.pools = nil
	for len(r.Over) > 0 {
		failed = errors.Join(failed, <-r.Over)
	}
	return failed
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

// RivalsLedger is the part of the ledger that the fault tests with Rivals share.
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
	// Unknown is the number of batches whose commit the consumers reported as unknown. NotReady is the number of times
	// that the consumers reported that the store is down.
	Unknown  int `json:"batches_whose_commit_was_unknown"`
	NotReady int `json:"times_the_store_was_called_down"`
	// First and Second are the numbers of effects of the two consumers.
	First   int     `json:"applied_by_the_first_consumer"`
	Second  int     `json:"applied_by_the_second_consumer"`
	Seconds Seconds `json:"seconds"`
}

// Audit computes the ledger. Call Audit after both consumers have ended.
func (r *Rivals) Audit(ctx context.Context, db *sql.DB, l *RivalsLedger) {
	l.Driver, l.Seconds = r.Driver.Name, Since(r.began)
	l.Unknown, l.NotReady = int(r.unknown.Load()), int(r.notReady.Load())
	for n, s := range r.sources {
		l.Unsettled += r.Feed.Issued() - s.Settled(semel.Ack)
		l.Duplicates += int(r.consumers[n].Counts().Duplicates)
	}
	l.Balance = ledger.Weigh(Must(ledger.Effects(ctx, db, "id")), r.Feed.IDs(), 0)
	Check(db.QueryRowContext(ctx, `
		select count(*) filter (where worker = 'first'), count(*) filter (where worker = 'second'),
			(select count(*) from semel_markers where outcome = 1), (select count(*) from semel_inbox)
		from effects`).Scan(&l.First, &l.Second, &l.Markers, &l.SetAside))
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
