package proofbrokers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/itest/workload"
	"github.com/semel-go/semel/kafka"
)

// fleet are the members of the consumer, in this process.
type fleet struct {
	members []workload.Consumer
	pools   []func()
	stop    []context.CancelFunc
	group   sync.WaitGroup
	mu      sync.Mutex
	err     error // guarded by mu: what a member ended with
}

// add starts a member.
func (r *run) add() error {
	source, err := kafka.New(kafka.Config{Brokers: r.brokers.Brokers(), Topics: []string{r.topic}, Group: r.group,
		NextGen: r.NextGen, SessionTimeout: 6 * time.Second, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	c := workload.Config(source)
	c.Lanes, c.Workers, c.Batch.Most = consumer.LanesPartition, 4, 200
	if r.Natural {
		c.Strategy, c.NaturalBecause = consumer.StrategyNatural, "planted"
	}
	name := fmt.Sprintf("member-%d", len(r.fleet.members)+1)
	handle := workload.Effect(name)
	if r.Natural { // no identity is read without a marker
		handle = func(ctx context.Context, exec workload.Exec, m *semel.Message) error {
			id, _ := m.Headers.Get("id")
			return exec(ctx, `insert into effects (id, worker) values ($1, $2)`, string(id), name)
		}
	}
	consumer, closePool, err := workload.Drivers()[1].Open(workload.Options{DSN: r.dsn, Connections: 5, Handler: handle, Config: c})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	f := &r.fleet
	f.members, f.pools, f.stop = append(f.members, consumer), append(f.pools, closePool), append(f.stop, cancel)
	f.group.Go(func() { f.note(consumer.Run(ctx)) })
	return nil
}

func (f *fleet) note(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = errors.Join(f.err, err)
}

// end lets the members drain and returns what was wrong with them.
func (f *fleet) end() error {
	for _, stop := range f.stop {
		stop()
	}
	f.group.Wait()
	for _, closePool := range f.pools {
		closePool()
	}
	f.stop, f.pools = nil, nil
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

// counts adds up what the members did.
func (f *fleet) counts() (sum semel.Counts) {
	for _, m := range f.members {
		c := m.Counts()
		sum.Deliveries += c.Deliveries
		sum.Applied += c.Applied
		sum.Duplicates += c.Duplicates
		sum.Parked += c.Parked
		sum.Failed += c.Failed
	}
	return sum
}
