package database

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/semel-go/semel/sqlstore/internal/mute"
)

func TestSessions(t *testing.T) {
	db := sql.OpenDB(mute.Conn{})
	defer func() { _ = db.Close() }()
	s, err := OpenPostgres(db, statements, Options{})
	if err != nil {
		t.Fatal(err)
	}
	session := func() *Session {
		t.Helper()
		e, err := s.Open(t.Context(), sql.LevelReadCommitted)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	t.Run("a_connection_goes_back_to_the_pool_unless_it_was_cut", func(t *testing.T) {
		for _, cut := range []bool{false, true} {
			e := session()
			if err := e.doOrAbort(t.Context(), e.InTx.Commit); err != nil {
				t.Fatal(err)
			}
			want := 1
			if cut {
				e.abort()
				want = 0
			}
			e.Release(true)
			if got := db.Stats().OpenConnections; got != want {
				t.Errorf("cut: %t: %d connections are open, want %d", cut, got, want)
			}
		}
	})
	t.Run("trap_97_one_that_was_cut_at_its_end_is_closed_also_where_the_driver_would_give_it_to_a_pool_of_its_own", func(t *testing.T) {
		e := session()
		closed := 0
		e.Handle.closeNow, e.Handle.close = func() {}, func(context.Context) error { closed++; return nil }
		if err := e.doOrAbort(t.Context(), e.InTx.Commit); err != nil {
			t.Fatal(err)
		}
		e.abort()
		if e.Release(true); closed != 1 {
			t.Errorf("it was closed %d times", closed)
		}
	})
	t.Run("a_session_that_is_over_cuts_nobodys_connection", func(t *testing.T) {
		e := session()
		cuts := 0
		e.Handle.closeNow = func() { cuts++ }
		e.RollbackTx(t.Context())
		e.KillTx()
		if cuts != 0 {
			t.Error("the connection was cut after it was given back")
		}
	})
	t.Run("a_call_is_cut_off_when_its_context_ends", func(t *testing.T) {
		e := session()
		cut := make(chan struct{})
		e.Handle.closeNow = func() { close(cut) }
		ctx, cancel := context.WithCancel(t.Context())
		err := e.doOrAbort(ctx, func() error {
			cancel()
			<-cut
			return context.Canceled
		})
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		e.Release(false)
	})
}

// chained is a wrapper of a connection, as in pgx's stdlib.
type chained struct{ next any }

func (c chained) Conn() *below { return c.next.(*below) }

type below struct{}

func (b *below) PgConn() *bottom { return &bottom{} }

type bottom struct{}

func (*bottom) TxStatus() byte { return 'E' }

func TestHandlesOfDrivers(t *testing.T) {
	for name, c := range map[string]struct {
		conn any
		want bool
	}{
		"as pgx": {chained{&below{}}, true}, "nothing": {mute.Conn{}, false}, "nil": {nil, false},
		"a nil on the way": {chained{(*below)(nil)}, false}, "the state itself": {&bottom{}, true},
	} {
		if h := postgresHandle(c.conn); (h.Status != nil) != c.want || c.want && h.Status() != 'E' {
			t.Errorf("%s: a state was found: %t", name, h.Status != nil)
		}
	}
}
