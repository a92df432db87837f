package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"testing"
)

// still is a driver that opens transactions and refuses statements. Its
// connections show no state, as those of most drivers do.
type still struct{}

func (still) Connect(context.Context) (driver.Conn, error) { return still{}, nil }
func (still) Driver() driver.Driver                        { return nil }
func (still) Prepare(string) (driver.Stmt, error)          { return nil, errors.New("no statements here") }
func (still) Close() error                                 { return nil }
func (still) Begin() (driver.Tx, error)                    { return still{}, nil }
func (still) Commit() error                                { return nil }
func (still) Rollback() error                              { return nil }

func (still) BeginTx(context.Context, driver.TxOptions) (driver.Tx, error) { return still{}, nil }

func TestSessions(t *testing.T) {
	db := sql.OpenDB(still{})
	defer func() { _ = db.Close() }()
	s, err := Postgres(db, Options{})
	if err != nil {
		t.Fatal(err)
	}
	session := func() *session {
		t.Helper()
		e, err := s.open(t.Context(), sql.LevelReadCommitted)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	t.Run("a_connection_goes_back_to_the_pool_unless_it_was_cut", func(t *testing.T) {
		for _, cut := range []bool{false, true} {
			e := session()
			if err := e.within(t.Context(), e.tx.Commit); err != nil {
				t.Fatal(err)
			}
			want := 1
			if cut {
				e.cut()
				want = 0
			}
			e.over(true)
			if got := db.Stats().OpenConnections; got != want {
				t.Errorf("cut: %t: %d connections are open, want %d", cut, got, want)
			}
		}
	})
	t.Run("trap_97_one_that_was_cut_at_its_end_is_closed_also_where_the_driver_would_give_it_to_a_pool_of_its_own", func(t *testing.T) {
		e := session()
		closed := 0
		e.handle.cut, e.handle.close = func() {}, func(context.Context) error { closed++; return nil }
		if err := e.within(t.Context(), e.tx.Commit); err != nil {
			t.Fatal(err)
		}
		e.cut()
		if e.over(true); closed != 1 {
			t.Errorf("it was closed %d times", closed)
		}
	})
	t.Run("a_session_that_is_over_cuts_nobodys_connection", func(t *testing.T) {
		e := session()
		cuts := 0
		e.handle.cut = func() { cuts++ }
		e.rollback(t.Context())
		e.kill()
		if cuts != 0 {
			t.Error("the connection was cut after it was given back")
		}
	})
	t.Run("a_call_is_cut_off_when_its_context_ends", func(t *testing.T) {
		e := session()
		cut := make(chan struct{})
		e.handle.cut = func() { close(cut) }
		ctx, cancel := context.WithCancel(t.Context())
		err := e.within(ctx, func() error {
			cancel()
			<-cut
			return context.Canceled
		})
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		e.over(false)
	})
	t.Run("a_driver_that_shows_the_state_is_believed", func(t *testing.T) {
		e := session()
		defer e.rollback(t.Context())
		for state, broken := range map[byte]bool{inTransaction: false, 'E': true, noTransaction: true} {
			e.handle.status = func() byte { return state }
			if got := (&batch{session: e}).TxAborted(); got != broken {
				t.Errorf("state %c: broken is %t", state, got)
			}
		}
	})
	t.Run("trap_T99_a_driver_that_shows_nothing_leaves_asking_the_database", func(t *testing.T) {
		e := session()
		defer e.rollback(t.Context())
		if !(&batch{session: e}).TxAborted() {
			t.Error("a database that does not answer has a transaction that stands")
		}
	})
}

// Chained leads to its connection as pgx's stdlib does.
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
		"as pgx": {chained{&below{}}, true}, "nothing": {still{}, false}, "nil": {nil, false},
		"a nil on the way": {chained{(*below)(nil)}, false}, "the state itself": {&bottom{}, true},
	} {
		if h := postgresHandle(c.conn); (h.status != nil) != c.want || c.want && h.status() != 'E' {
			t.Errorf("%s: a state was found: %t", name, h.status != nil)
		}
	}
}
