//go:build unix

// Package days tests daily partitions of markers with processes that are killed. At the same time, some processes drop
// partitions, some move a consumer to daily partitions, and some consume. The tests check that no message is lost or
// doubled, and that no change is left half done.
package days

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/faults"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/itest/worlds/children"
	"github.com/semel-go/semel/pgxstore"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
)

func TestMain(m *testing.M) { children.Main(m, live) }

// work is the task of a child.
type work string

const (
	reaps   work = "reaps"   // creates partitions for coming days, and drops due partitions
	begins  work = "begins"  // begins to move a consumer to daily partitions
	ends    work = "ends"    // ends a move to daily partitions
	before  work = "before"  // consumes like a release before the move, without partitions
	handles work = "handles" // consumes with daily partitions over database/sql
	pipes   work = "pipes"   // consumes with daily partitions over pgx
)

// order is the task of a child process, with its settings.
type order struct {
	DSN, Consumer string
	Work          work
	// Statement is the number of the statement at which the child kills itself; 0 means never. The child kills itself
	// before it sends the statement or, if After is set, after the server has answered.
	Statement int64
	After     bool
	// A consumer kills itself when it passes Point for the Hit-th time. Seed determines the order of the consumer's
	// messages, and First is the number of the first message. The times in the ids of messages lie on Day and on the
	// days before.
	Point       faults.Point
	Hit         int64
	Seed, First int
	Day         time.Time
}

// killingTracer is a tracer that kills its own process at a statement.
type killingTracer struct {
	order
	sent *atomic.Int64
}

type nthKey struct{}

func (m killingTracer) TraceQueryStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceQueryStartData) context.Context {
	n := m.sent.Add(1)
	if n == m.Statement && !m.After {
		kill()
	}
	return context.WithValue(ctx, nthKey{}, n)
}

func (m killingTracer) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryEndData) {
	if n, _ := ctx.Value(nthKey{}).(int64); n == m.Statement && m.After {
		kill()
	}
}

func kill() {
	p, err := os.FindProcess(os.Getpid())
	if err == nil {
		_ = p.Kill()
	}
	select {}
}

func live(o order) error {
	config, err := pgx.ParseConfig(o.DSN)
	if err != nil {
		return err
	}
	config.Tracer = killingTracer{o, new(atomic.Int64)}
	db := stdlib.OpenDB(*config)
	defer db.Close()
	s, err := sqlstore.Postgres(db, sqlstore.Options{})
	if err != nil {
		return err
	}
	ctx := context.Background()
	switch o.Work {
	case reaps:
		own, err := s.Dated(ctx, datedOptions(o.Consumer))
		if err != nil {
			return err
		}
		return pass(ctx, own, o.Consumer)
	case begins:
		return s.BeginMove(ctx, datedOptions(o.Consumer))
	case ends:
		_, err := s.EndMove(ctx, o.Consumer)
		return err
	}
	return consume(ctx, o, s)
}

// datedOptions returns the options of a store with daily partitions.
func datedOptions(consumer string) sqlstore.Dated {
	return sqlstore.Dated{Consumer: consumer, IDTime: identity.UUIDv7, Back: 6}
}

// pass runs one pass of the reaper, which removes old markers.
func pass(ctx context.Context, s store.Reaper, consumer string) error {
	if err := s.Progressed(ctx, consumer, nil); err != nil {
		return err
	}
	if _, err := s.Advance(ctx, consumer); err != nil {
		return err
	}
	for next := (store.ReapMark{}); !next.Done; {
		done, err := s.Reap(ctx, store.Reaping{Consumer: consumer, Most: 10, After: next})
		if err != nil || done.Elsewhere {
			return err
		}
		next = done.Next
	}
	return nil
}

// The number of messages of a consumer. Each process gets all messages, like a restarted process to which the broker
// redelivers all messages.
const messages = 300

// uuid returns an id whose time is the start of a day: the parameter day plus the number of days in the parameter days.
func uuid(day time.Time, days, n int) string {
	ms := day.Add(time.Duration(days) * 24 * time.Hour).UnixMilli()
	return fmt.Sprintf("%08x-%04x-7000-8000-%012x", ms>>16, ms&0xffff, n)
}

func message(day time.Time, i int) *semel.Message {
	return &semel.Message{Body: fmt.Append(nil, i), Headers: semel.Headers{{Name: "id", Value: []byte(uuid(day, -(i % 5), i))}}}
}

// consume delivers every message again and again until the message is acked.
func consume(ctx context.Context, o order, s *sqlstore.Store) error {
	var hits atomic.Int64
	plan := faults.Plan{At: func(p faults.Point, _ int) {
		if p == o.Point && hits.Add(1) == o.Hit {
			kill()
		}
	}}
	config := consumer.Config{Name: o.Consumer, Identity: identity.By("header:id"), Workers: 2, Logger: slog.New(slog.DiscardHandler),
		Retention: consumer.RetentionPolicy{Keep: 30 * 24 * time.Hour, IDTime: identity.UUIDv7, DailyPartitions: o.Work != before}}
	const insert = "insert into effects values ("
	plain := func(ctx context.Context, tx *sql.Tx, m *semel.Message) error {
		_, err := tx.ExecContext(ctx, insert+string(m.Body)+")")
		return err
	}
	switch o.Work {
	case handles:
		var err error
		if s, err = s.Dated(ctx, datedOptions(o.Consumer)); err != nil {
			return err
		}
	case pipes:
		pool, err := pgxpool.New(ctx, o.DSN)
		if err != nil {
			return err
		}
		defer pool.Close()
		direct, err := pgxstore.New(pool, pgxstore.Options{})
		if err == nil {
			direct, err = direct.Dated(ctx, datedOptions(o.Consumer))
		}
		if err != nil {
			return err
		}
		c, err := consumer.New(direct, func(ctx context.Context, tx pgx.Tx, m *semel.Message) error {
			_, err := tx.Exec(ctx, insert+string(m.Body)+")")
			return err
		}, config, plan)
		if err != nil {
			return err
		}
		return deliver(ctx, o, c)
	}
	c, err := consumer.New(s, plain, config, plan)
	if err != nil {
		return err
	}
	return deliver(ctx, o, c)
}

func deliver[Tx any](ctx context.Context, o order, c *consumer.Consumer[Tx]) error {
	order := rand.New(rand.NewPCG(uint64(o.Seed), 1)).Perm(messages)
	for first := 0; first < messages; {
		some := make([]*semel.Message, 0, 5)
		for _, i := range order[first:min(first+cap(some), messages)] {
			some = append(some, message(o.Day, o.First+i))
		}
		all, err := c.ProcessAll(ctx, some)
		if err != nil {
			return err
		}
		ended := true
		for i := range all {
			ended = ended && all[i].Kind == semel.Ack
			if all[i].Kind != semel.Ack && strings.Contains(fmt.Sprint(all[i]), "no such") {
				return fmt.Errorf("%+v", all[i])
			}
		}
		if ended { // if not ended, another process works on this message, so the message is delivered again
			first += cap(some)
		}
	}
	return c.Close(ctx)
}
