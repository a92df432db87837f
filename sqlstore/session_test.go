package sqlstore

import (
	"database/sql"
	"testing"

	"github.com/semel-go/semel/sqlstore/internal/database"
	"github.com/semel-go/semel/sqlstore/internal/mute"
)

func TestSessions(t *testing.T) {
	db := sql.OpenDB(mute.Conn{})
	defer func() { _ = db.Close() }()
	s, err := Postgres(db, Options{})
	if err != nil {
		t.Fatal(err)
	}
	open := func(t *testing.T) *database.Session {
		t.Helper()
		e, err := s.db.Open(t.Context(), sql.LevelReadCommitted)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	t.Run("a_driver_that_shows_the_state_is_believed", func(t *testing.T) {
		e := open(t)
		defer e.RollbackTx(t.Context())
		for state, broken := range map[byte]bool{database.InTransaction: false, 'E': true, database.NoTransaction: true} {
			e.Handle.Status = func() byte { return state }
			if got := (&batch{Session: e}).TxAborted(); got != broken {
				t.Errorf("state %c: broken is %t", state, got)
			}
		}
	})
	t.Run("trap_T99_a_driver_that_shows_nothing_leaves_asking_the_database", func(t *testing.T) {
		e := open(t)
		defer e.RollbackTx(t.Context())
		if !(&batch{Session: e}).TxAborted() {
			t.Error("a database that does not answer has a transaction that stands")
		}
	})
}
