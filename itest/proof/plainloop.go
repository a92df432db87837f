//go:build unix

package proof

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

	"github.com/semel-go/semel/itest/services/topics"
	"github.com/semel-go/semel/itest/worlds/processes"
)

// PlainLoopCommand is the first argument with which a program runs as a plain loop. With this argument, the program
// must call PlainLoop with the second argument.
const PlainLoopCommand = "plain-loop"

// The orders of a plain loop: it commits offsets before or after the effects.
const (
	SettleFirst = "settle-first"
	SettleLast  = "settle-last"
)

// RunPlainLoop makes a member run a plain loop instead of semel, as the group Consumer.
func (f *Fleet) RunPlainLoop(m *Member, order, topic string, session time.Duration) {
	m.Own(PlainLoopCommand, order)
	m.Env = append(m.Env, "BROKERS="+strings.Join(f.Cluster.Brokers(), ","), "TOPIC="+topic, "SESSION="+session.String())
}

// plainLoop works like many services, without markers: plainLoop fetches messages, applies them in a transaction, and
// commits the offsets.
type plainLoop struct {
	first bool // the loop commits offsets before the effect
	db    *pgx.Conn
}

// PlainLoop consumes until SIGTERM, in the given order. Environment variables contain the addresses of the servers.
func PlainLoop(order string) error {
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
	l := plainLoop{order == SettleFirst, db}
	return Poll(ctx, strings.Split(os.Getenv("BROKERS"), ","), Consumer, os.Getenv("TOPIC"), session, 100, func(c *kgo.Client, records []*kgo.Record) error {
		return l.do(context.WithoutCancel(ctx), c, records)
	})
}

func (l plainLoop) do(ctx context.Context, c *kgo.Client, records []*kgo.Record) error {
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

func (l plainLoop) apply(ctx context.Context, records []*kgo.Record) error {
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
