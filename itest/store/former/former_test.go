// Package former runs two releases of a service with different identities on the same store. The tests kill the
// processes of both releases.
package former

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/faults"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/itest/worlds/children"
	"github.com/semel-go/semel/sqlstore"
	_ "modernc.org/sqlite"
)

// order contains the settings of a child process: its release, its file, and the point at which it kills itself.
type order struct {
	Path string
	// Newer means that the identity is the event id and that the previous identity is the order id. A release without
	// Newer knows only the order id.
	Newer bool
	// Point and Hit say where the child kills itself: when it passes the point for the Hit-th time. Without
	// a point the child ends normally.
	Point faults.Point
	Hit   int
}

func TestMain(m *testing.M) { children.Main(m, runChild) }

// messageCount is the number of messages. From message number coarse on, two messages each have the same order
// id but different contents.
const messageCount, coarse = 60, 40

func message(i int) *semel.Message {
	of := i
	if i >= coarse {
		of = coarse + (i-coarse)/2
	}
	return &semel.Message{Body: fmt.Appendf(nil, "body %d", i), Headers: semel.Headers{
		{Name: "order", Value: fmt.Append(nil, of)}, {Name: "event", Value: fmt.Append(nil, 1000-i)}}}
}

func open(path string) (*sql.DB, *sqlstore.Store, error) {
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(20000)&_pragma=journal_mode(wal)&_pragma=synchronous(off)&_pragma=foreign_keys(1)")
	if err != nil {
		return nil, nil, err
	}
	s, err := sqlstore.SQLite(db, sqlstore.Options{})
	return db, s, err
}

// runChild delivers every message again, as a broker does after a restart, and kills its own process at
// order.Point.
func runChild(o order) error {
	db, s, err := open(o.Path)
	if err != nil {
		return err
	}
	defer db.Close()
	config := consumer.Config{Name: "billing", Identity: identity.By("header:order"), Workers: 2, Logger: slog.New(slog.DiscardHandler)}
	if o.Newer {
		config.Identity, config.PreviousIdentity = identity.By("header:event"), &consumer.PreviousIdentity{Identity: config.Identity}
	}
	var hits atomic.Int64
	plan := faults.Plan{At: func(p faults.Point, _ int) {
		if p == o.Point && hits.Add(1) == int64(o.Hit) {
			kill()
		}
	}}
	c, err := consumer.New(s, func(ctx context.Context, tx *sql.Tx, m *semel.Message) error {
		_, err := tx.ExecContext(ctx, "insert into effects values (?)", string(m.Body))
		return err
	}, config, plan)
	if err != nil {
		return err
	}
	for first := 0; first < messageCount; first += 7 {
		var some []*semel.Message
		for i := first; i < min(first+7, messageCount); i++ {
			some = append(some, message(i))
		}
		all, err := c.ProcessAll(context.Background(), some)
		if err != nil {
			return err
		}
		for i := range all {
			if all[i].Kind != semel.Ack { // the other release works on this message, so the message is delivered again
				first -= 7
				break
			}
		}
	}
	return c.Close(context.Background())
}

func kill() {
	p, err := os.FindProcess(os.Getpid())
	if err == nil {
		_ = p.Kill()
	}
	select {}
}

func TestTwoReleasesAreKilledInTurn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "shop.db")
	db, s, err := open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if _, err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec("create table effects (body text not null)"); err != nil {
		t.Fatal(err)
	}
	run := func(o order) *exec.Cmd {
		o.Path = path
		c := children.Command(t.Context(), t, o)
		c.Stderr = os.Stderr
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		return c
	}
	killed := 0
	points := []faults.Point{faults.AfterMark, faults.BeforeCommit, faults.AfterCommit, faults.AfterEffect}
	_ = run(order{Point: faults.AfterCommit, Hit: 2}).Wait() // at first only the previous release runs
	for i := range 6 {
		older := run(order{Point: points[i%4], Hit: 1 + i})
		newer := run(order{Newer: true, Point: points[(i+1)%4], Hit: 1 + i*2})
		for _, c := range []*exec.Cmd{older, newer} {
			if c.Wait() != nil {
				killed++
			}
		}
	}
	for _, c := range []*exec.Cmd{run(order{}), run(order{Newer: true})} {
		if err := c.Wait(); err != nil {
			t.Errorf("a process that was not killed failed: %v", err)
		}
	}
	if killed < 6 {
		t.Errorf("%d processes were killed", killed)
	}
	count := func(query string, args ...any) (n int) {
		if err := db.QueryRow(query, args...).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	t.Run("A7_each_message_takes_effect_once_over_a_rolling_deployment", func(t *testing.T) {
		for i := range coarse {
			if n := count("select count(*) from effects where body = ?", fmt.Sprint("body ", i)); n != 1 {
				t.Errorf("message %d has %d effects", i, n)
			}
		}
	})
	t.Run("A7_a_coarser_former_identity_loses_nothing_over_a_rolling_deployment", func(t *testing.T) {
		for i := coarse; i < messageCount; i++ {
			n := count("select count(*) from effects where body = ?", fmt.Sprint("body ", i))
			kept := count("select count(*) from semel_inbox where cast(payload as text) = ?", fmt.Sprint("body ", i))
			if n > 1 || n+kept == 0 {
				t.Errorf("message %d has %d effects and %d rows", i, n, kept)
			}
		}
	})
}
