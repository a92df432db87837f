package postgres

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
)

func TestRivalsForAnAdoptedTable(t *testing.T) {
	db := newDatabase(t)
	t.Run("J2_old_and_new_code_at_the_same_time_have_one_effect", func(t *testing.T) { bothCodes(t, db) })
	t.Run("J2_the_old_code_in_flight_is_waited_for", func(t *testing.T) { inFlight(t, db) })
	t.Run("J2_two_processes_race_for_ids_of_an_adopted_table", func(t *testing.T) { raceForIDs(t, db) })
	t.Run("J2_two_consumers_and_the_old_code_have_one_effect_a_message", func(t *testing.T) { bothEngines(t, db) })
}

// processManually writes a row and the effect in one transaction, like a consumer without Semel that has a table of
// processed messages.
func (s *fixture) processManually(ctx context.Context, id string) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	done, err := tx.ExecContext(ctx, s.inSchema("insert into in.processed (message_id) values ($1) on conflict do nothing"), id)
	if err != nil {
		return err
	}
	if n, err := done.RowsAffected(); err != nil || n == 0 {
		return err
	}
	if err := s.effect(ctx, tx, id); err != nil {
		return err
	}
	return tx.Commit()
}

func bothCodes(t *testing.T, db *sql.DB) {
	s := newSimple(t, db)
	ids := make([]string, 300)
	for i := range ids {
		ids[i] = fmt.Sprint(i)
	}
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			for _, id := range ids {
				if err := s.processManually(t.Context(), id); err != nil {
					t.Error(err)
					return
				}
			}
		})
		all.Go(func() {
			for i := 0; i < len(ids); i += 20 {
				for ended := false; !ended; {
					r, err := s.attempt(t, s.makeMarks(t, ids[i:i+20]...))
					if err != nil && s.store.Classify(err) != store.ClassContended {
						t.Error(err)
						return
					}
					ended = r.Outcome == store.Committed
				}
			}
		})
	}
	all.Wait()
	for _, id := range ids {
		s.expectCounts(t, id, 1, 1)
	}
}

func inFlight(t *testing.T, db *sql.DB) {
	s := newSimple(t, db)
	old, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"commits", "rolls back"} {
		if _, err := old.Exec(s.inSchema("insert into in.processed (message_id) values ($1)"), id); err != nil {
			t.Fatal(err)
		}
		_, _, err := s.store.Begin(t.Context(), store.TxOptions{MarkLock: 20 * time.Millisecond}, s.makeMarks(t, id))
		s.expectError(t, err, store.ClassContended, "")
		end := old.Commit
		if id == "rolls back" {
			end = old.Rollback
		}
		var asked sync.WaitGroup
		asked.Go(func() {
			waitTrue(t, db, "select exists (select 1 from pg_stat_activity where datname = current_database() and wait_event = 'transactionid')")
			if err := end(); err != nil {
				t.Error(err)
			}
		})
		b, v := s.begin(t, store.TxOptions{}, s.makeMarks(t, id))
		b.Rollback(t.Context())
		asked.Wait()
		if want := map[string]string{"commits": "already applied", "rolls back": "fresh"}[id]; v[0].String() != want {
			t.Errorf("the old code %s: the verdict is %s, want %s", id, v[0], want)
		}
		if old, err = db.Begin(); err != nil {
			t.Fatal(err)
		}
	}
	if err := old.Rollback(); err != nil {
		t.Fatal(err)
	}
}

func raceForIDs(t *testing.T, db *sql.DB) {
	s := newSimple(t, db)
	var ids []string
	for i := range 100 {
		ids = append(ids, fmt.Sprint(i))
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			other, err := s.plainStore(t).Adopt(t.Context(), s.named(simple))
			if err != nil {
				t.Error(err)
				return
			}
			mine := &fixture{Instance: s.Instance, db: db, store: other, schema: s.schema}
			for ended := false; !ended; {
				r, err := mine.attempt(t, mine.makeMarks(t, ids...))
				if err != nil && other.Classify(err) != store.ClassContended {
					t.Error(err)
				}
				ended = r.Outcome == store.Committed
			}
		})
	}
	all.Wait()
	for _, id := range ids {
		s.expectCounts(t, id, 1, 1)
	}
}

// plainStore returns a store on the same tables that does not use the user's own table.
func (s *fixture) plainStore(t testing.TB) *sqlstore.Store {
	return newUnmigratedStore(t, s.db, sqlstore.Options{Schema: s.schema})
}

func (s *fixture) named(a sqlstore.Adopted) sqlstore.Adopted {
	a.Table = s.inSchema(a.Table)
	return a
}

// bothEngines runs two consumers, as in two processes, and code without Semel on the same messages.
func bothEngines(t *testing.T, db *sql.DB) {
	s := newSimple(t, db)
	ids := make([]string, 200)
	for i := range ids {
		ids[i] = fmt.Sprint(i)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for _, id := range ids {
			if err := s.processManually(t.Context(), id); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for range 2 {
		consumer := s.consumer(t)
		for first := range 4 {
			all.Go(func() {
				for i := first; i < len(ids); i += 4 {
					process(t, consumer, ids[i])
				}
			})
		}
	}
	all.Wait()
	for _, id := range ids {
		s.expectCounts(t, id, 1, 1)
	}
	if rows, err := s.store.Rows(t.Context(), store.RowFilter{}); err != nil || len(rows) != 0 {
		t.Errorf("set aside: %+v, %v", rows, err)
	}
}

// consumer returns a consumer with a store of its own that also writes to the user's table.
func (s *fixture) consumer(t *testing.T) *consumer.Consumer[*sql.Tx] {
	t.Helper()
	store, err := s.plainStore(t).Adopt(t.Context(), s.named(simple))
	if err != nil {
		t.Fatal(err)
	}
	running, err := consumer.New(store, func(ctx context.Context, tx *sql.Tx, m *semel.Message) error {
		return s.effect(ctx, tx, m.Identity.ID)
	}, consumer.Config{Name: "billing", Identity: identity.By("header:id"), Workers: 4, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = running.Close(context.WithoutCancel(t.Context())) })
	return running
}

// process delivers a message until the consumer acknowledges it.
func process(t *testing.T, consumer *consumer.Consumer[*sql.Tx], id string) {
	m := &semel.Message{Headers: semel.Headers{{Name: "id", Value: []byte(id)}}, Body: []byte(`{}`)}
	for {
		d, err := consumer.Process(t.Context(), m)
		if err != nil {
			t.Error(err)
			return
		}
		if d.Kind == semel.Ack {
			return
		}
	}
}
