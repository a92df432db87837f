//go:build unix

package kafka

import (
	"context"
	"encoding/json"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/services/topics"
	"github.com/semel-go/semel/itest/worlds/processes"
)

// LoopCommand is the first argument with which a program runs as a plain loop. With this argument, the program must
// call Loop with the second argument.
const LoopCommand = "plain-loop"

// plant makes a member run a plain loop instead of semel, if Plant selects this fault.
func (r *run) plant(m *proof.Member) {
	if r.plain() {
		m.Own(LoopCommand, r.Plant)
		m.Env = append(m.Env, "BROKERS="+strings.Join(r.Cluster.Brokers(), ","), "SESSION="+r.Session.String())
	}
}

func (r *run) plain() bool { return r.Plant == "settle-first" || r.Plant == "settle-last" }

// loop works like many services, without markers: loop fetches messages, applies them in a transaction, and commits the
// offsets.
type loop struct {
	first bool // the loop commits offsets before the effect
	db    *pgx.Conn
}

// Loop consumes until SIGTERM. With the order "settle-first", Loop commits offsets before the effects, with
// "settle-last" after the effects. Environment variables contain the addresses of the servers.
func Loop(order string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	session, err := time.ParseDuration(os.Getenv("SESSION"))
	if err != nil {
		return err
	}
	db, err := pgx.Connect(ctx, os.Getenv("DATABASE"))
	if err != nil {
		return err
	}
	defer func() { _ = db.Close(context.WithoutCancel(ctx)) }()
	l := loop{order == "settle-first", db}
	return proof.Poll(ctx, strings.Split(os.Getenv("BROKERS"), ","), group, topic, session, 100, func(c *kgo.Client, records []*kgo.Record) error {
		return l.do(context.WithoutCancel(ctx), c, records)
	})
}

func (l loop) do(ctx context.Context, c *kgo.Client, records []*kgo.Record) error {
	if l.first {
		_ = c.CommitRecords(ctx, records...)
	}
	err := l.apply(ctx, records)
	for try := 0; err != nil && try < 50 && !l.db.IsClosed(); try++ { // retried, because members can deadlock on the counters
		processes.Pause(ctx, 20*time.Millisecond)
		err = l.apply(ctx, records)
	}
	if err == nil && !l.first {
		_ = c.CommitRecords(ctx, records...)
	}
	return err
}

func (l loop) apply(ctx context.Context, records []*kgo.Record) error {
	return pgx.BeginFunc(ctx, l.db, func(tx pgx.Tx) error {
		batch := &pgx.Batch{}
		for _, r := range records {
			id, kind := topics.Header(r, "ce_id"), topics.Header(r, "ce_type")
			var body struct {
				Repository struct {
					FullName string `json:"full_name"`
				}
			}
			if err := json.Unmarshal(r.Value, &body); err != nil {
				return err
			}
			batch.Queue(`insert into counters (type, repository, n) values ($1, $2, 1)
				on conflict (type, repository) do update set n = counters.n + 1`, kind, body.Repository.FullName)
			batch.Queue(`insert into effects (delivery, type, repository) values ($1, $2, $3)`, id, kind, body.Repository.FullName)
		}
		return tx.SendBatch(ctx, batch).Close()
	})
}
