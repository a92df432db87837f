package pgxstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/semel-go/semel/store"
)

// newUnconnectedStore returns a store whose pool has no connection.
func newUnconnectedStore(t *testing.T) *Store {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), "postgres://nobody@127.0.0.1:1/none?sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	s, err := New(pool, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func server(code string) error {
	return fmt.Errorf("paying: %w", &pgconn.PgError{Code: code, Message: "etwas ging schief", Severity: "FEHLER"})
}

func TestErrorsAreClassifiedByCode(t *testing.T) {
	s := newUnconnectedStore(t)
	t.Run("trap_T10_codes_decide_and_no_text_does", func(t *testing.T) {
		for code, want := range map[string]store.Class{
			"23505": store.ClassPermanent, "22P02": store.ClassPermanent, "42601": store.ClassPermanent, "P0001": store.ClassPermanent,
			"SM001": store.ClassPermanent, "2D000": store.ClassPermanent, "0A000": store.ClassPermanent,
			"40001": store.ClassContended, "40P01": store.ClassContended, "55P03": store.ClassContended, "26000": store.ClassContended,
			"25P02": store.ClassAborted,
			"57P01": store.ClassDown, "53100": store.ClassDown, "53300": store.ClassDown, "25006": store.ClassDown, "28P01": store.ClassDown, "08006": store.ClassDown,
		} {
			if got := s.Classify(server(code)); got != want {
				t.Errorf("%s is of class %d, want %d", code, got, want)
			}
		}
	})
	t.Run("a_table_that_changed_under_a_prepared_statement_is_nobodys_fault", func(t *testing.T) {
		err := &pgconn.PgError{Code: "0A000", Routine: "RevalidateCachedQuery"}
		if got := s.Classify(err); got != store.ClassContended {
			t.Errorf("it is of class %d", got)
		}
	})
	t.Run("errors_of_the_connection_say_that_the_store_is_down", func(t *testing.T) {
		for _, err := range []error{io.ErrUnexpectedEOF, &net.OpError{Op: "read", Err: errors.New("reset")}, &pgconn.ConnectError{}} {
			if got := s.Classify(fmt.Errorf("paying: %w", err)); got != store.ClassDown {
				t.Errorf("%T is of class %d", err, got)
			}
		}
		if _, _, err := s.Begin(t.Context(), store.TxOptions{}, nil); s.Classify(err) != store.ClassDown {
			t.Errorf("a server that is not there gives %v", err)
		}
	})
	t.Run("a_handlers_own_error_and_deadline_are_its_own", func(t *testing.T) {
		for _, err := range []error{errors.New("no"), context.DeadlineExceeded} {
			if got := s.Classify(err); got != store.ClassRetry {
				t.Errorf("%v is of class %d", err, got)
			}
		}
	})
}

// loud is an error whose methods panic when package errors calls them.
type loud struct{}

func (loud) Error() string { return "loud" }
func (loud) As(any) bool   { panic("as") }
func (loud) Is(error) bool { panic("is") }

// deep is an error whose method Unwrap panics.
type deep struct{}

func (deep) Error() string { return "deep" }
func (deep) Unwrap() error { panic("unwrap") }

func TestPanickingErrors(t *testing.T) {
	s := newUnconnectedStore(t)
	for name, odd := range map[string]error{"nil": (*pgconn.PgError)(nil), "loud": loud{}, "deep": deep{}} {
		t.Run("trap_T84_an_error_that_cannot_be_read_is_the_handlers_own/"+name, func(t *testing.T) {
			for _, err := range []error{odd, fmt.Errorf("wrapped: %w", odd), errors.Join(errors.New("joined"), odd)} {
				if class := s.Classify(err); class != store.ClassRetry || s.IsStoreFault(err) {
					t.Errorf("%T is of class %d", err, class)
				}
				if class := s.Classify(&storeError{"begin", store.ClassDown, err}); class != store.ClassDown {
					t.Errorf("what the store has decided becomes %d", class)
				}
			}
		})
	}
}

func TestDefiniteFailures(t *testing.T) {
	t.Run("trap_91_only_the_servers_word_is_a_definite_failure", func(t *testing.T) {
		for _, code := range []string{"23505", "40001", "40P01", "25P02", "57014", "53100"} {
			if !provesRollback(server(code)) {
				t.Errorf("%s is not taken for definite", code)
			}
		}
		if !provesRollback(fmt.Errorf("x: %w", pgx.ErrTxCommitRollback)) {
			t.Error("a COMMIT that rolled back is not taken for definite")
		}
		for _, code := range []string{"08006", "08007", "08P01", "57P01", "57P02", "58000", "XX000", "40003", ""} {
			if provesRollback(server(code)) {
				t.Errorf("%s is taken for definite", code)
			}
		}
		for _, err := range []error{io.ErrUnexpectedEOF, context.DeadlineExceeded, errors.New("conn closed"), pgx.ErrTxClosed} {
			if provesRollback(err) {
				t.Errorf("%v is taken for definite", err)
			}
		}
	})
}

func TestOptionsAreChecked(t *testing.T) {
	pool := newUnconnectedStore(t).pool
	for _, o := range []Options{{Prefix: "a b"}, {Prefix: "1"}, {Schema: `a"b`}, {Isolation: pgx.ReadUncommitted}, {Isolation: "snapshot"}} {
		if _, err := New(pool, o); err == nil {
			t.Errorf("%+v is taken", o)
		}
	}
}
