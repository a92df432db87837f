package database

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/semel-go/semel/store"
)

// The SQL files of package sqlstore.
var statements = os.DirFS("../..")

// coded is an error like the errors of SQLite drivers.
type coded struct {
	code int
	text string
}

func (e *coded) Error() string { return e.text }

func (e *coded) Code() int { return e.code }

func sqliteStore(t *testing.T) *DB {
	t.Helper()
	s, err := open(nil, sqliteDialect(statements, methodCode), Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func code(n int) error { return &coded{n, "ein Fehler"} }

var classes = []struct {
	name string
	err  error
	want store.Class
}{
	{"unique", code(2067), store.ClassPermanent},
	{"primary key", code(1555), store.ClassPermanent},
	{"not null", code(1299), store.ClassPermanent},
	{"check", code(275), store.ClassPermanent},
	{"foreign key", code(787), store.ClassPermanent},
	{"raise in a trigger", code(1811), store.ClassPermanent},
	{"syntax, no such table", code(1), store.ClassPermanent},
	{"type mismatch", code(20), store.ClassPermanent},
	{"too big", code(18), store.ClassPermanent},
	{"busy", code(5), store.ClassDown},
	{"busy in recovery", code(261), store.ClassDown},
	{"stale snapshot", code(517), store.ClassContended},
	{"locked", code(6), store.ClassDown},
	{"read-only", code(8), store.ClassDown},
	{"full", code(13), store.ClassDown},
	{"input and output", code(10), store.ClassDown},
	{"fsync", code(1034), store.ClassDown},
	{"cannot open", code(14), store.ClassDown},
	{"corrupt", code(11), store.ClassDown},
	{"interrupted", code(9), store.ClassRetry},
	{"rolled back under a statement", code(516), store.ClassAborted},
	{"refused by the fence", code(531), store.ClassAborted},
	{"a text that names a constraint", errors.New("UNIQUE constraint failed: a.b"), store.ClassRetry},
	{"a text that names a lock", errors.New("database is locked"), store.ClassRetry},
	{"transaction over", sql.ErrTxDone, store.ClassAborted},
	{"bad connection", driver.ErrBadConn, store.ClassDown},
	{"connection closed", sql.ErrConnDone, store.ClassDown},
	{"no rows", sql.ErrNoRows, store.ClassRetry},
	{"the handler's deadline", context.DeadlineExceeded, store.ClassRetry},
	{"cancelled", context.Canceled, store.ClassRetry},
	{"a number of another trade", code(404), store.ClassRetry},
}

func TestErrorsAreClassifiedByCode(t *testing.T) {
	s := sqliteStore(t)
	t.Run("trap_T10_codes_decide_and_no_text_does", func(t *testing.T) {
		for _, c := range classes {
			for _, err := range []error{c.err, fmt.Errorf("charging: %w", c.err), errors.Join(errors.New("first"), c.err)} {
				if got := s.Classify(err); got != c.want {
					t.Errorf("%s: class %v, want %v", c.name, got, c.want)
				}
			}
		}
	})
	t.Run("law_13_failures_of_the_stores_own_statements_are_nobodys_attempt", func(t *testing.T) {
		for _, err := range []error{code(1), code(2067), code(9), context.DeadlineExceeded, sql.ErrTxDone, errors.New("?")} {
			if got := s.Classify(s.Blameless("mark", err)); got != store.ClassDown {
				t.Errorf("%v is of class %v, want down", err, got)
			}
		}
		if got := s.Classify(s.Blameless("mark", code(517))); got != store.ClassContended {
			t.Errorf("a stale snapshot is of class %v, want contended", got)
		}
	})
	t.Run("a_driver_without_the_method_brings_a_function", func(t *testing.T) {
		odd := errors.New("odd")
		s, err := open(nil, sqliteDialect(statements, func(err error) (int, bool) { return 13, errors.Is(err, odd) }), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Classify(fmt.Errorf("x: %w", odd)); got != store.ClassDown {
			t.Errorf("class %v, want down", got)
		}
	})
}

func TestViolationsNameTheirConstraint(t *testing.T) {
	for _, c := range []struct {
		code       int
		text       string
		constraint string
		want       bool
	}{
		{2067, "constraint failed: UNIQUE constraint failed: invoices.number (2067)", "invoices.number", true},
		{2067, "UNIQUE constraint failed: invoices.number", "invoices.number", true},
		{2067, "UNIQUE constraint failed: invoices.number", "Invoices.Number", true},
		{1555, "UNIQUE constraint failed: invoices.number", "invoices.number", true},
		{2067, "UNIQUE constraint failed: lines.invoice, lines.position", "lines.invoice,lines.position", true},
		{2067, "UNIQUE constraint failed: index 'by_day' (2067)", "index 'by_day'", true},
		{2067, "UNIQUE constraint failed: lines.invoice, lines.position", "lines.invoice", false},
		{2067, "UNIQUE constraint failed: invoices.number", "invoices.id", false},
		{787, "FOREIGN KEY constraint failed: invoices.number", "invoices.number", false},
		{1, "UNIQUE constraint failed: invoices.number", "invoices.number", false},
	} {
		err := fmt.Errorf("inserting: %w", &coded{c.code, c.text})
		if got := Violates(err, c.constraint); got != c.want {
			t.Errorf("%d %q violates %q: %t, want %t", c.code, c.text, c.constraint, got, c.want)
		}
	}
	if Violates(errors.New("UNIQUE constraint failed: a.b"), "a.b") || Violates(nil, "a.b") {
		t.Error("an error without code violates a constraint")
	}
}
