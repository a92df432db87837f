package postgres

import (
	"context"
	"database/sql"
	"testing"

	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
)

func TestATableThatChangesUnderAPreparedStatement(t *testing.T) {
	db := newDatabase(t)
	s := newFixture(t, db, sqlstore.Options{})
	s.exec(t, "create table in.wide (name text)")
	text := s.inSchema("insert into in.wide values ($1) returning *")
	own, err := db.Prepare(text)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = own.Close() })
	db.SetMaxOpenConns(1)
	ways := map[string]func(ctx context.Context, tx *sql.Tx, id string) error{
		"by_the_driver": func(ctx context.Context, tx *sql.Tx, id string) error {
			rows, err := tx.QueryContext(ctx, text, id)
			return closing(rows, err)
		},
		"by_the_handler": func(ctx context.Context, tx *sql.Tx, id string) error {
			rows, err := tx.StmtContext(ctx, own).QueryContext(ctx, id)
			return closing(rows, err)
		},
	}
	for name, insert := range ways {
		t.Run("trap_T102_it_is_nobodys_fault_and_the_next_run_works/"+name, func(t *testing.T) {
			deliver := func(id string) error {
				b, _ := s.begin(t, store.TxOptions{}, s.makeMarks(t, id))
				err := insert(t.Context(), b.Tx(0), id)
				if err == nil {
					if r := b.Commit(t.Context(), store.Ending{}); r.Outcome != store.Committed {
						t.Error(r)
					}
					return nil
				}
				if c := s.store.Classify(err); c != store.ClassContended {
					t.Errorf("%v is of class %v, want contended", err, c)
				}
				b.Rollback(t.Context())
				return err
			}
			if err := deliver("before " + name); err != nil {
				t.Fatal(err)
			}
			s.exec(t, "alter table in.wide add column "+name+" int")
			if deliver("after "+name) == nil {
				t.Error("the situation did not occur: the old plan fits")
			}
			if err := deliver("after " + name); err != nil {
				t.Errorf("again: %v", err)
			}
		})
	}
	t.Run("trap_T102_another_thing_that_the_server_does_not_support_is_permanent", func(t *testing.T) {
		b, _ := s.begin(t, store.TxOptions{}, s.makeMarks(t, "x"))
		_, err := b.Tx(0).Exec("select 1 as a group by 1 for update")
		s.expectError(t, err, store.ClassPermanent, "0A000")
		b.Rollback(t.Context())
	})
}

func closing(rows *sql.Rows, err error) error {
	if err != nil {
		return err
	}
	for rows.Next() {
	}
	_ = rows.Close()
	return rows.Err()
}
