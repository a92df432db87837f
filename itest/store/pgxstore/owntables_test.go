package pgxstore

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/reasonname"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/pgxstore"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
)

// throughSQL returns a store through database/sql on the same tables.
func (h *fixture) throughSQL(t *testing.T) (*sql.DB, *sqlstore.Store) {
	t.Helper()
	db, err := sql.Open("pgx", h.pool.Config().ConnString())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	s, err := sqlstore.Postgres(db, sqlstore.Options{Schema: h.schema})
	if err != nil {
		t.Fatal(err)
	}
	return db, s
}

// receiveAll receives one message for each body in one call, and returns the store's verdicts (new,
// duplicate, …).
func receiveAll[Tx any](t *testing.T, st store.TxStore[Tx], begin func() (Tx, func() error), marks []store.Mark, bodies ...string) error {
	t.Helper()
	messages := make([]*semel.Message, len(marks))
	for i := range marks {
		marks[i].As, messages[i] = store.Waiting, &semel.Message{Body: []byte(bodies[i])}
	}
	tx, commit := begin()
	_, err := st.(store.CallerTx[Tx]).ReceiveIn(t.Context(), tx, marks, messages, reasonname.None)
	if end := commit(); err == nil {
		err = end
	}
	return err
}

// receivers returns the two ways to receive messages into the test's tables: with pgx and with database/sql.
func (h *fixture) receivers(t *testing.T) map[string]func(marks []store.Mark, bodies ...string) error {
	db, inner := h.throughSQL(t)
	return map[string]func(marks []store.Mark, bodies ...string) error{
		"pgx": func(marks []store.Mark, bodies ...string) error {
			return receiveAll[pgx.Tx](t, h.Store, func() (pgx.Tx, func() error) {
				tx, err := h.pool.Begin(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				return tx, func() error { return tx.Commit(t.Context()) }
			}, marks, bodies...)
		},
		"database/sql": func(marks []store.Mark, bodies ...string) error {
			return receiveAll[*sql.Tx](t, inner, func() (*sql.Tx, func() error) {
				tx, err := db.BeginTx(t.Context(), nil)
				if err != nil {
					t.Fatal(err)
				}
				return tx, tx.Commit
			}, marks, bodies...)
		},
	}
}

// If the receipt of a message wrote no row, the message would be lost, because further deliveries would count as
// duplicates.
func TestARowThatIsKeptOutIsNotReceived(t *testing.T) {
	h := newFixture(t, openPool(t, services.Postgres(t)))
	h.exec(t, "create function in.eat() returns trigger language plpgsql as 'begin return null; end'")
	for name, receive := range h.receivers(t) {
		t.Run("trap_83_by_a_trigger_with_"+name, func(t *testing.T) {
			h.exec(t, "create trigger eats before insert on in.semel_inbox for each row when (new.payload = 'b') execute function in.eat()")
			err := receive(h.makeMarks(t, name+"a", name+"b", name+"c"), "a", "b", "c")
			if h.exec(t, "drop trigger eats on in.semel_inbox"); err == nil || !strings.Contains(err.Error(), "2 of 3 rows of the inbox were written") {
				t.Errorf("it says %v", err)
			}
			if err := receive(h.makeMarks(t, name+"a", name+"b", name+"c"), "a", "b", "c"); err != nil {
				t.Errorf("without the trigger: %v", err)
			}
		})
		t.Run("trap_83_more_than_a_statement_takes_are_all_received_with_"+name, func(t *testing.T) {
			big := strings.Repeat("x", 9<<20)
			if err := receive(h.makeMarks(t, name+"1", name+"2", name+"3"), big, big, "last"); err != nil {
				t.Fatal(err)
			}
			if n := h.number(t, "select count(*) from in.semel_inbox where length(payload) = $1 or payload = 'last'", len(big)); n%3 != 0 || n == 0 {
				t.Errorf("%d rows", n)
			}
		})
	}
}

func TestArraysWithoutNulls(t *testing.T) {
	h := newFixture(t, openPool(t, services.Postgres(t)))
	t.Run("trap_83_what_is_absent_is_not_kept_as_the_text_NULL", func(t *testing.T) {
		spoiled := h.withPool(t, openPool(t, h.pool.Config().ConnString(), useTextArgs, func(c *pgxpool.Config) { c.ConnConfig.RuntimeParams["array_nulls"] = "off" }))
		if err := spoiled.receivers(t)["pgx"](h.makeMarks(t, "a"), ""); err == nil || !strings.Contains(err.Error(), "array_nulls is off") {
			t.Errorf("it says %v", err)
		}
		if err := spoiled.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "array_nulls is off") {
			t.Errorf("the check says %v", err)
		}
	})
}

// endBatch processes a batch of claims, and commits the batch after the function spoil has damaged the
// tables.
func endBatch[Tx any](t *testing.T, st store.TxStore[Tx], marks []store.Mark, e store.Ending, spoil func()) store.Result {
	t.Helper()
	spoil()
	b, v, err := st.Begin(t.Context(), store.TxOptions{}, marks)
	if err != nil || v[0].Kind != store.Fresh {
		t.Fatal(v, err)
	}
	return b.Commit(context.WithoutCancel(t.Context()), e)
}

func TestWhatKeepsAClaimFromItsEndIsNoMessagesFault(t *testing.T) {
	h := newFixture(t, openPool(t, services.Postgres(t)))
	_, inner := h.throughSQL(t)
	h.exec(t, "create function in.eat() returns trigger language plpgsql as 'begin return null; end'")
	h.exec(t, "create function in.refuse() returns trigger language plpgsql as $$ begin raise exception 'not on my watch'; end $$")
	ways := map[string]func(marks []store.Mark, e store.Ending, spoil func()) store.Result{
		"queue": func(m []store.Mark, e store.Ending, s func()) store.Result {
			return endBatch[*pgxstore.Queue](t, h.Queued(), m, e, s)
		},
		"handle": func(m []store.Mark, e store.Ending, s func()) store.Result {
			return endBatch[pgx.Tx](t, h.Store, m, e, s)
		},
		"database/sql": func(m []store.Mark, e store.Ending, s func()) store.Result {
			return endBatch[*sql.Tx](t, inner, m, e, s)
		},
	}
	for _, c := range []struct {
		name, on, does string
		want           store.Class
	}{
		{"law_5_what_is_not_written_is_a_claim_that_was_lost", "in.semel_inbox", "before update", store.ClassClaimLost},
		{"law_5_a_marker_that_is_not_written_is_a_claim_that_was_lost", "in.semel_markers", "before update", store.ClassClaimLost},
		{"C17_what_is_refused_is_the_stores", "in.semel_inbox", "after update", store.ClassDown},
	} {
		for way, end := range ways {
			for _, n := range []int{1, 3} {
				t.Run(fmt.Sprintf("%s_%s_%d", c.name, way, n), func(t *testing.T) {
					var marks []store.Mark
					var e store.Ending
					for i := range n {
						m, one := h.claim(t, fmt.Sprint(c.name, way, n, i))
						one.Claims[0].Mark = i
						marks, e.Claims = append(marks, m...), append(e.Claims, one.Claims...)
					}
					function := map[bool]string{true: "in.refuse()", false: "in.eat()"}[c.want == store.ClassDown]
					r := end(marks, e, func() {
						h.exec(t, "create trigger mine "+c.does+" on "+c.on+" for each row execute function "+function)
					})
					h.exec(t, "drop trigger mine on "+c.on)
					if r.Outcome != store.NotCommitted || r.Class != c.want || r.Culprit != store.NoCulprit {
						t.Errorf("%+v", r)
					}
					if n := h.number(t, "select count(*) from in.semel_inbox where state <> 'IN_PROGRESS'"); n != 0 {
						t.Errorf("%d rows have ended", n)
					}
					h.exec(t, "update in.semel_inbox set state = 'DISCARDED', due_at = null, token = null, locked_until = null")
					h.exec(t, "delete from in.semel_inbox")
				})
			}
		}
	}
}
