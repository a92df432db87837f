package postgres

import (
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/store/sqlsuite"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
)

// The test searches every column of each row in each table of the schema.
func TestNothingIsLeftInTheTables(t *testing.T) {
	db := newDatabase(t)
	sqlsuite.NothingIsLeft(t, func(t testing.TB) sqlsuite.Personal {
		s := newFixture(t, db, sqlstore.Options{})
		return sqlsuite.Personal{Store: s.store, Where: func(t testing.TB, forms [][]byte) []string { return tablesWith(t, db, s.schema, forms) }}
	})
}

// tablesWith returns the tables of a schema in which a row contains a word in one of the given encodings.
func tablesWith(t testing.TB, db *sql.DB, schema string, forms [][]byte) []string {
	t.Helper()
	return sqlsuite.TablesWith(t, schema, forms, func(query string, args ...any) (texts []string) {
		rows, err := db.Query(query, args...)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		for rows.Next() {
			var text string
			if err := rows.Scan(&text); err != nil {
				t.Fatal(err)
			}
			texts = append(texts, text)
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		return texts
	})
}

// A backup that is made after an erasure contains no data of the erased messages.
func TestNothingIsLeftInADump(t *testing.T) {
	dsn := services.Postgres(t)
	db := openDB(t, dsn)
	sqlsuite.NothingIsLeft(t, func(t testing.TB) sqlsuite.Personal {
		s := newFixture(t, db, sqlstore.Options{})
		return sqlsuite.Personal{Store: s.store, Where: func(t testing.TB, forms [][]byte) []string {
			if sqlsuite.Has(services.DumpText(t, dsn), forms) {
				return []string{"the dump"}
			}
			return nil
		}}
	})
}

// An erasure does not wait for rows that another transaction has locked, but erases all other rows.
func TestAnErasureWaitsForNobody(t *testing.T) {
	t.Run("P4_a_row_that_is_locked_is_left_as_busy", func(t *testing.T) {
		s := newFixture(t, newDatabase(t), sqlstore.Options{})
		for _, id := range []string{"a", "b"} {
			m := s.makeMarks(t, id)
			m[0].As = store.Parked
			b, _ := s.begin(t, store.TxOptions{}, m)
			b.Commit(t.Context(), store.Ending{Rows: []store.Row{{State: store.StateParked, Message: &semel.Message{Body: []byte(id)}}}})
		}
		rows, err := s.store.Rows(t.Context(), store.RowFilter{})
		if err != nil || len(rows) != 2 {
			t.Fatal(rows, err)
		}
		for _, r := range rows {
			if err := errors.Join(s.store.Discard(t.Context(), store.Act{Verb: "discard", Who: "ana"}, r.Seen())...); err != nil {
				t.Fatal(err)
			}
		}
		tx, err := s.db.Begin()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(s.inSchema("select 1 from in.semel_inbox where number = $1 for update"), rows[0].Number); err != nil {
			t.Fatal(err)
		}
		o := admin.Erasing{Act: store.Act{Verb: "erase", Who: "ana"}}
		began := time.Now()
		done, err := s.store.Erase(t.Context(), o)
		if err != nil || done.Identities != 1 || len(done.Left) != 1 || done.Left[0].Why != admin.ErasureBusy || done.Left[0].Row != rows[0].Number {
			t.Errorf("%+v, %v", done, err)
		}
		if waited := time.Since(began); waited > time.Minute {
			t.Errorf("it waited for %v", waited)
		}
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
		if done, err = s.store.Erase(t.Context(), o); err != nil || done.Identities != 1 || len(done.Left) != 0 {
			t.Errorf("again: %+v, %v", done, err)
		}
	})
}

func TestTablesAreEncrypted(t *testing.T) {
	db := newDatabase(t)
	first := newFixture(t, db, sqlstore.Options{})
	sqlsuite.Encrypted(t, sqlsuite.Encrypting[*sql.Tx]{
		Open: func(t testing.TB, c store.Cipher, since time.Time) sqlsuite.EncryptingStore[*sql.Tx] {
			return newUnmigratedStore(t, db, sqlstore.Options{Schema: first.schema, Cipher: c, EncryptedSince: since})
		},
		Where: func(t testing.TB, forms [][]byte) []string { return tablesWith(t, db, first.schema, forms) },
		Exec: func(t testing.TB, text string) {
			if _, err := db.ExecContext(t.Context(), strings.ReplaceAll(text, "{prefix}", `"`+first.schema+`".semel_`)); err != nil {
				t.Fatal(err)
			}
		},
	})
}
