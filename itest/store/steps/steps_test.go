package steps

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/faults"
	"github.com/semel-go/semel/file"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/worlds/children"
	"github.com/semel-go/semel/pgxstore"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
	_ "modernc.org/sqlite"
)

// order is the task of a child process, with its settings. The child runs each of the consumers on the store. A
// consumer has a single message, whose id is the consumer's name. The child stops when it passes the point for the n-th
// time, and waits until the test continues it. The child's first batch receives the message, and each further batch
// runs one step, so n determines between which steps the child stops.
type order struct {
	Store, Where string
	Point        faults.Point
	N            int
	Consumers    []string
	// Leased makes the steps run without a transaction. The steps then write their effects with a connection of their
	// own.
	Leased bool
	// Who is the name of the process, which is written with each effect.
	Who string
}

func TestMain(m *testing.M) { children.Main(m, runChild) }

var names = []string{"reserve", "charge", "ship"}

const record = "insert into done (step, id, who) values (%s)"

// runChild runs the consumers until no work is left.
func runChild(o order) error {
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
		values := map[string]string{"sqlite": "?, ?, ?", "postgres": "$1, $2, $3"}[o.Store]
		if o.Leased {
			return work(ctx, o, withLeases(store, plan), func(ctx context.Context, _ consumer.Call, step, id string) error {
				_, err := db.ExecContext(ctx, fmt.Sprintf(record, values), step, id, o.Who)
				return err
			})
		}
		return work(ctx, o, inTransactions(store, plan), func(ctx context.Context, tx *sql.Tx, step, id string) error {
			_, err := tx.ExecContext(ctx, fmt.Sprintf(record, values), step, id, o.Who)
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
		return work(ctx, o, inTransactions(store.Queued(), plan), func(_ context.Context, q *pgxstore.Queue, step, id string) error {
			q.Exec(fmt.Sprintf(record, "$1, $2, $3"), step, id, o.Who)
			return nil
		})
	}
	return work(ctx, o, inTransactions(store, plan), func(ctx context.Context, tx pgx.Tx, step, id string) error {
		_, err := tx.Exec(ctx, fmt.Sprintf(record, "$1, $2, $3"), step, id, o.Who)
		return err
	})
}

// maker creates a consumer with steps.
type maker[Tx any] func([]consumer.Step[Tx], consumer.Config) (*consumer.Consumer[Tx], error)

// inTransactions returns a function that makes consumers whose steps run in transactions of the store.
func inTransactions[Tx any](st store.TxStore[Tx], plan faults.Plan) maker[Tx] {
	return func(steps []consumer.Step[Tx], c consumer.Config) (*consumer.Consumer[Tx], error) {
		return consumer.NewSteps(st, steps, c, plan)
	}
}

// withLeases returns a function that makes consumers whose steps run without a transaction.
func withLeases[Tx any](st store.TxStore[Tx], plan faults.Plan) maker[consumer.Call] {
	return func(steps []consumer.Step[consumer.Call], c consumer.Config) (*consumer.Consumer[consumer.Call], error) {
		return consumer.NewLeasedSteps(st, steps, c, plan)
	}
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

// work runs the consumers at the same time. Each step writes its name and the output of the previous step.
func work[Tx any](ctx context.Context, o order, of maker[Tx], add func(ctx context.Context, tx Tx, step, id string) error) error {
	var steps []consumer.Step[Tx]
	for i, name := range names {
		steps = append(steps, consumer.Step[Tx]{Name: name, Run: func(ctx context.Context, tx Tx, m *semel.Message, done consumer.Done) ([]byte, error) {
			if i > 0 && string(done.Output(names[i-1])) != names[i-1]+m.Identity.ID {
				return nil, semel.Park("it is not told what the step before it left")
			}
			return []byte(name + m.Identity.ID), add(ctx, tx, name, m.Identity.ID)
		}})
	}
	ended := make(chan error, len(o.Consumers))
	for _, name := range o.Consumers {
		body := fmt.Sprintf(`{"specversion":"1.0","id":"%s","source":"shop","type":"order","data":{}}`+"\n", name)
		c, err := of(steps, consumer.Config{
			Name: name, Source: file.Stdin(strings.NewReader(body), file.Options{}), Identity: identity.CloudEvents(),
			Strategy: consumer.StrategyInbox, AckOnReceipt: true, Workers: 1,
			Inbox: consumer.InboxPolicy{Lease: time.Second, Poll: 20 * time.Millisecond, MaxCrashes: 100}, IdleExit: 3 * time.Second,
			Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
		})
		if err != nil {
			return err
		}
		go func() {
			err := c.Run(ctx)
			fmt.Printf("%s %+v\n", name, c.Counts().Inbox)
			ended <- err
		}()
	}
	for range o.Consumers {
		if err := <-ended; err != nil {
			return err
		}
	}
	return nil
}

// child is a running child process that waits at the point of its order.
type child struct {
	*exec.Cmd
	stdin io.WriteCloser
	out   *bufio.Reader
}

// startChild starts a child process, and waits until the child reports that it has reached the point of its
// order.
func startChild(t *testing.T, o order) *child {
	t.Helper()
	c := &child{Cmd: children.Command(t.Context(), t, o)}
	c.Stderr = os.Stderr
	stdin, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.stdin, c.out = stdin, bufio.NewReader(out)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	if line, _ := c.out.ReadString('\n'); o.N > 0 && line != "ready\n" {
		t.Fatalf("it never came to %s for the time %d, and says %q", o.Point, o.N, line)
	}
	return c
}

// end waits until the child has ended successfully, and returns the rest of its output.
func (c *child) end(t *testing.T) string {
	t.Helper()
	said, _ := io.ReadAll(c.out)
	if err := c.Wait(); err != nil {
		t.Errorf("a process that was not killed failed: %v", err)
	}
	return string(said)
}

// place creates a store with the table of effects, and returns the path or connection string.
func place(t *testing.T, kind string) (where string, db *sql.DB, store *sqlstore.Store) {
	t.Helper()
	where = filepath.Join(t.TempDir(), "shop.db")
	if kind != "sqlite" {
		kind, where = "postgres", services.Postgres(t)
		services.Hurry(t, where)
	}
	db, store, err := openSQL(order{Store: kind, Where: where})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if _, err := store.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec("create table done (step text not null, id text not null, who text not null)"); err != nil {
		t.Fatal(err)
	}
	return where, db, store
}

// row returns the row of a consumer's message, and the number of its steps that are done.
func row(t *testing.T, st *sqlstore.Store, name string) (r store.StoredRow, done int) {
	t.Helper()
	all, err := st.Rows(t.Context(), store.RowFilter{Consumer: name})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) == 0 {
		return r, 0
	}
	for i, s := range all[0].Steps {
		if s.Name != names[i] || string(s.Output) != names[i]+name {
			t.Errorf("%s: step %d is %s and left %q", name, i+1, s.Name, s.Output)
		}
	}
	return all[0], len(all[0].Steps)
}

// readEffects returns, for each step of a message, the names of the processes in which the step took effect.
func readEffects(t *testing.T, db *sql.DB, id string) map[string][]string {
	t.Helper()
	rows, err := db.Query("select step, who from done where id = '" + id + "'")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	all := map[string][]string{}
	for rows.Next() {
		var step, who string
		if err := rows.Scan(&step, &who); err != nil {
			t.Fatal(err)
		}
		all[step] = append(all[step], who)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// death is a point at which a process is killed, and the steps that are done before the kill.
type death struct {
	point   faults.Point
	n, done int
}

// allDeaths returns a death for each point of each batch. The first batch receives the message, and each
// further batch runs a step.
func allDeaths() (all []death) {
	for done := range len(names) + 1 {
		all = append(all, death{faults.AfterMark, done + 1, max(done-1, 0)}, death{faults.BeforeCommit, done + 1, max(done-1, 0)}, death{faults.AfterCommit, done + 1, done})
		if done < len(names) {
			all = append(all, death{faults.AfterEffect, done + 1, done})
		}
	}
	return all
}

// finish runs processes without kills until all messages of the order are completed. Rows that killed processes had
// claimed wait until their leases end.
func finish(t *testing.T, o order, rows *sqlstore.Store) {
	t.Helper()
	for range 100 {
		startChild(t, o).end(t)
		left := slices.DeleteFunc(slices.Clone(o.Consumers), func(name string) bool {
			r, _ := row(t, rows, name)
			return r.State == store.StateCompleted
		})
		if len(left) == 0 {
			return
		}
	}
}

func TestStepsUnderKills(t *testing.T) {
	for _, st := range []string{"sqlite", "postgres", "pgxstore", "pgxstore_queue"} {
		t.Run("C11_law_1_killed_between_any_two_steps_those_that_are_done_never_run_again/"+st, func(t *testing.T) {
			where, db, rows := place(t, st)
			between := map[int]int{} // number of kills by the number of steps that were done
			var all []string
			for _, d := range allDeaths() {
				name := fmt.Sprintf("%s-%d", d.point, d.n)
				all = append(all, name)
				c := startChild(t, order{Store: st, Where: where, Point: d.point, N: d.n, Consumers: []string{name}, Who: "killed"})
				_ = c.Process.Kill()
				_ = c.Wait()
				_, done := row(t, rows, name)
				if done != d.done || len(readEffects(t, db, name)) != d.done {
					t.Errorf("killed %s: %d steps are done, want %d; effects %v", name, done, d.done, readEffects(t, db, name))
				}
				between[done]++
			}
			for done := range names {
				if between[done] < 4 {
					t.Errorf("only %d processes were killed with %d steps done", between[done], done)
				}
			}
			finish(t, order{Store: st, Where: where, Consumers: all, Who: "next"}, rows)
			for i, d := range allDeaths() {
				r, done := row(t, rows, all[i])
				if r.State != store.StateCompleted || done != len(names) {
					t.Errorf("%s ended as %s with %d steps", all[i], r.State, done)
				}
				took := readEffects(t, db, all[i])
				for n, step := range names {
					who := "next"
					if n < d.done {
						who = "killed"
					}
					if !slices.Equal(took[step], []string{who}) {
						t.Errorf("%s: %s took effect for %v, want %s alone", all[i], step, took[step], who)
					}
				}
			}
			t.Logf("processes killed, by number of steps done: %v", between)
		})
	}
}
