package sqlite

import (
	"context"
	"database/sql"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/store"
)

// In SQLite, only one transaction can write. If the program's transaction has written before Mark or Receive, the store
// must also write a new source in this transaction.
func TestATransactionThatHasWritten(t *testing.T) {
	db := openFile(t, newFile(t), pragmas)
	exec(t, db, "create table orders (id text primary key)")
	st := storeOn(t, db)
	c, err := consumer.New(st, func(context.Context, *sql.Tx, *semel.Message) error { return nil }, consumer.Config{
		Name: "billing", Identity: identity.By("body:/id").From("body:/source"), Strategy: consumer.StrategyInbox})
	if err != nil {
		t.Fatal(err)
	}
	// inTransaction calls the function do for a message, in a transaction that has already written.
	inTransaction := func(t *testing.T, id string, do func(tx *sql.Tx, m *semel.Message) (store.Verdict, error)) (store.Verdict, *sql.Tx) {
		t.Helper()
		tx, err := db.BeginTx(t.Context(), nil)
		if err == nil {
			_, err = tx.Exec("insert into orders values (?)", id)
		}
		if err != nil {
			t.Fatal(err)
		}
		v, err := do(tx, &semel.Message{Body: []byte(`{"specversion": "1.0", "type": "order.placed", "id": "1", "source": "/` + id + `"}`)})
		if err != nil {
			t.Error(err, tx.Rollback())
		}
		return v, tx
	}
	accept := func(tx *sql.Tx, m *semel.Message) (store.Verdict, error) {
		verdicts, err := c.Accept(t.Context(), tx, m)
		if err != nil {
			return store.Verdict{}, err
		}
		return verdicts[0], nil
	}
	mark := func(tx *sql.Tx, m *semel.Message) (store.Verdict, error) { return c.TryMark(t.Context(), tx, m) }
	for name, do := range map[string]func(tx *sql.Tx, m *semel.Message) (store.Verdict, error){"receives": accept, "marks": mark} {
		t.Run("D1_"+name+"_of_a_source_that_is_new", func(t *testing.T) {
			v, tx := inTransaction(t, name, do)
			if err := tx.Rollback(); v.Kind != store.Fresh || err != nil { // the rollback also removes the new source
				t.Error(v, err)
			}
			v, tx = inTransaction(t, name, do)
			if err := tx.Commit(); v.Kind != store.Fresh || err != nil {
				t.Error(v, err)
			}
			v, tx = inTransaction(t, "again "+name, func(tx *sql.Tx, m *semel.Message) (store.Verdict, error) {
				m.Body = []byte(`{"specversion": "1.0", "type": "order.placed", "id": "1", "source": "/` + name + `"}`)
				return do(tx, m)
			})
			if err := tx.Commit(); v.Kind != store.Seen || err != nil {
				t.Error(v, err)
			}
		})
	}
}
