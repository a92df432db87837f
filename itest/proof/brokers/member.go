package brokers

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/itest/workload"
	"github.com/semel-go/semel/kafka"
)

// add starts a member.
func (r *run) add() error {
	source, err := kafka.New(kafka.Config{Brokers: r.brokers.Brokers(), Topics: []string{r.topic}, Group: r.group,
		NextGen: r.NextGen, SessionTimeout: 6 * time.Second, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	c := workload.Config(source)
	c.Lanes, c.Workers, c.Batch.MaxSize = consumer.LanesPartition, 4, 200
	if r.Natural {
		c.Strategy, c.NaturalReason = consumer.StrategyNatural, "planted"
	}
	r.started++
	name := fmt.Sprintf("member-%d", r.started)
	handle := workload.Effect(name)
	if r.Natural { // no identity is read without a marker
		handle = func(ctx context.Context, exec workload.Exec, m *semel.Message) error {
			id, _ := m.Headers.Get("id")
			return exec(ctx, `insert into effects (id, worker) values ($1, $2)`, string(id), name)
		}
	}
	return r.members.Add(workload.Drivers()[1], workload.Options{DSN: r.dsn, Connections: 5, Handler: handle, Config: c})
}
