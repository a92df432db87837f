package steps

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/contract"
	"github.com/semel-go/semel/faults"
	"github.com/semel-go/semel/file"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/itest/children"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/pgxstore"
	"github.com/semel-go/semel/sqlstore"
	_ "modernc.org/sqlite"
)

// order is what a child does: it works on the store, and stops for ever where it passes the
// point for the n-th time.
type order struct {
	Store, Where string
	Point        faults.Point
	N            int
	// Messages are how many there are by then: each round brings one more.
	Messages int
}

func TestMain(m *testing.M) { children.Main(m, live) }

var names = []string{"reserve", "charge", "ship"}

const record = "insert into done (step, id) values (%s)"

// live runs the consumer until it has nothing to do.
func live(o order) error {
	passed := 0
	plan := faults.Plan{At: func(p faults.Point, _ int) {
		if p != o.Point {
			return
		}
		if passed++; passed == o.N {
			fmt.Println("ready")
			_, _ = bufio.NewReader(os.Stdin).ReadByte()
		}
	}}
	ctx := context.Background()
	switch o.Store {
	case "sqlite", "postgres":
		db, store, err := openSQL(o)
		if err != nil {
			return err
		}
		defer db.Close()
		values := map[string]string{"sqlite": "?, ?", "postgres": "$1, $2"}[o.Store]
		return work(ctx, o, store, plan, func(ctx context.Context, tx *sql.Tx, step, id string) error {
			_, err := tx.ExecContext(ctx, fmt.Sprintf(record, values), step, id)
			return err
		})
	}
	pool, err := pgxpool.New(ctx, o.Where)
	if err != nil {
		return err
	}
	defer pool.Close()
	store, err := pgxstore.New(pool, pgxstore.Options{})
	if err != nil {
		return err
	}
	if o.Store == "pgxstore_queue" {
		return work(ctx, o, store.Queued(), plan, func(_ context.Context, q *pgxstore.Queue, step, id string) error {
			q.Exec(fmt.Sprintf(record, "$1, $2"), step, id)
			return nil
		})
	}
	return work(ctx, o, store, plan, func(ctx context.Context, tx pgx.Tx, step, id string) error {
		_, err := tx.Exec(ctx, fmt.Sprintf(record, "$1, $2"), step, id)
		return err
	})
}

func openSQL(o order) (*sql.DB, *sqlstore.Store, error) {
	if o.Store == "sqlite" {
		db, err := sql.Open("sqlite", "file:"+o.Where+"?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(off)&_pragma=foreign_keys(on)")
		if err != nil {
			return nil, nil, err
		}
		store, err := sqlstore.SQLite(db, sqlstore.Options{})
		return db, store, err
	}
	db, err := sql.Open("pgx", o.Where)
	if err != nil {
		return nil, nil, err
	}
	store, err := sqlstore.Postgres(db, sqlstore.Options{})
	return db, store, err
}

// bodies are so many messages, one a line.
func bodies(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `{"specversion":"1.0","id":"%d","source":"shop","type":"order","data":{}}`+"\n", i)
	}
	return b.String()
}

// work runs the steps. Each writes its name, and that of the output before it.
func work[Tx any](ctx context.Context, o order, store contract.TxStore[Tx], plan faults.Plan, add func(ctx context.Context, tx Tx, step, id string) error) error {
	var steps []consumer.Step[Tx]
	for i, name := range names {
		steps = append(steps, consumer.Step[Tx]{Name: name, Run: func(ctx context.Context, tx Tx, m *semel.Message, done consumer.Done) ([]byte, error) {
			if i > 0 && string(done.Output(names[i-1])) != names[i-1]+m.Identity.ID {
				return nil, semel.Park("it is not told what the step before it left")
			}
			return []byte(name + m.Identity.ID), add(ctx, tx, name, m.Identity.ID)
		}})
	}
	c, err := consumer.NewSteps(store, steps, consumer.Config{
		Name: "billing", Source: file.Stdin(strings.NewReader(bodies(o.Messages)), file.Options{}), Identity: identity.CloudEvents(),
		Strategy: consumer.StrategyInbox, Settle: consumer.SettleAfterReceipt, Workers: 1,
		Inbox: consumer.InboxPolicy{Lease: time.Second, Poll: 20 * time.Millisecond, Starts: 100}, IdleExit: 3 * time.Second,
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}, plan)
	if err != nil {
		return err
	}
	return c.Run(ctx)
}

// kill runs a child until it says that it is at its point, and kills it there. It reports
// whether it came there.
func kill(t *testing.T, o order) (killed bool) {
	t.Helper()
	c := children.Command(t.Context(), t, o)
	c.Stderr = os.Stderr
	stdin, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	if killed = line == "ready\n"; killed {
		_ = c.Process.Kill()
	}
	if err := c.Wait(); err != nil && !killed {
		t.Errorf("a process that nobody killed says %v", err)
	}
	return killed
}

// place makes a store with the table of effects, and says where it is.
func place(t *testing.T, store string) (where string, db *sql.DB) {
	t.Helper()
	where = filepath.Join(t.TempDir(), "shop.db")
	if store != "sqlite" {
		where = services.Postgres(t)
		services.Hurry(t, where)
	}
	kind := store
	if store != "sqlite" {
		kind = "postgres"
	}
	db, s, err := openSQL(order{Store: kind, Where: where})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if _, err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec("create table done (step text not null, id text not null)"); err != nil {
		t.Fatal(err)
	}
	return where, db
}

// effects is how often each step of each message took effect.
func effects(t *testing.T, db *sql.DB) map[string]int {
	t.Helper()
	rows, err := db.Query("select step, id from done")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	all := map[string]int{}
	for rows.Next() {
		var step, id string
		if err := rows.Scan(&step, &id); err != nil {
			t.Fatal(err)
		}
		all[step+id]++
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestStepsUnderKills(t *testing.T) {
	for _, store := range []string{"sqlite", "postgres", "pgxstore", "pgxstore_queue"} {
		t.Run("C11_law_1_killed_anywhere_each_step_takes_effect_once/"+store, func(t *testing.T) {
			where, db := place(t, store)
			deaths, messages := 0, 0
			for _, point := range []faults.Point{faults.AfterMark, faults.AfterEffect, faults.BeforeCommit, faults.AfterCommit} {
				for n := 1; n <= 3; n++ { // a receipt, a step, and one after it
					messages++
					if kill(t, order{store, where, point, n, messages}) {
						deaths++
					}
					for what, times := range effects(t, db) {
						if times != 1 {
							t.Errorf("killed %s for the time %d: %s took effect %d times", point, n, what, times)
						}
					}
				}
			}
			all := effects(t, db)
			for range 100 { // processes that nobody kills; what the dead had claimed waits for the end of its lease
				if len(all) == messages*len(names) {
					break
				}
				kill(t, order{Store: store, Where: where, Messages: messages})
				all = effects(t, db)
			}
			for i := range messages {
				for _, name := range names {
					if n := all[fmt.Sprint(name, i)]; n != 1 {
						t.Errorf("%s of %d took effect %d times", name, i, n)
					}
				}
			}
			if deaths < 12 {
				t.Errorf("only %d processes were killed", deaths)
			}
			t.Logf("%d processes were killed", deaths)
		})
	}
}
