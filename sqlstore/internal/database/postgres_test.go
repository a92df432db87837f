package database

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unicode"

	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/store"
)

// stated is an error like the errors of PostgreSQL drivers.
type stated struct {
	state          string
	ConstraintName string
	Routine        string
	File           string
}

func (e *stated) Error() string { return "FEHLER: doppelter Schlüsselwert" }

func (e *stated) SQLState() string { return e.state }

func TestPostgresErrorsAreClassifiedByState(t *testing.T) {
	s := mustPostgres(t, Options{})
	state := func(code string) error { return &stated{state: code} }
	t.Run("trap_T10_states_decide_and_no_text_does", func(t *testing.T) {
		for want, errs := range map[store.Class][]error{
			store.ClassContended: {&stated{state: "0A000", Routine: "RevalidateCachedQuery"}, state("40001"), state("40P01"), state("55P03"), state("40000")},
			store.ClassPermanent: {
				state("23505"), state("23503"), state("23502"), state("23514"), state("23P01"), state("40002"),
				state("22021"), state("22P05"), state("22003"), state("22P02"), state("42601"), state("42P01"), state("42501"),
				state("54000"), state("P0001"), state("P0002"), state("21000"), state("2D000"), state("25001"), state("0A000"), state("44000"),
			},
			store.ClassDown: {
				state("08000"), state("08003"), state("08006"), state("08P01"), state("57P01"), state("57P02"), state("57P03"), state("57P05"),
				state("53100"), state("53200"), state("53300"), state("25006"), state("25P03"), state("28P01"), state("28000"), state("3D000"),
				state("58030"), state("XX001"), state("40003"), state("26000"), state("42P05"),
				driver.ErrBadConn, sql.ErrConnDone, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed,
				&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, &net.DNSError{},
			},
			store.ClassRetry: {
				state("57014"), state("XX000"), state("55000"), state("ZZ999"), state("4"), state(""), errors.New("duplicate key value"),
				sql.ErrNoRows, context.DeadlineExceeded, context.Canceled,
			},
			store.ClassAborted: {state("25P02"), state("25P01"), sql.ErrTxDone},
		} {
			for _, plain := range errs {
				for _, err := range []error{plain, fmt.Errorf("charging: %w", plain), errors.Join(errors.New("first"), plain)} {
					if got := s.Classify(err); got != want {
						t.Errorf("%v %s: class %v, want %v", err, SQLState(err), got, want)
					}
				}
			}
		}
	})
	t.Run("law_13_failures_of_the_stores_own_statements_are_nobodys_attempt", func(t *testing.T) {
		for _, code := range []string{"42P01", "23505", "57014", "25P02", "25006", "P0001"} {
			if got := s.Classify(s.Blameless("mark", state(code))); got != store.ClassDown {
				t.Errorf("%s is of class %v, want down", code, got)
			}
		}
		for _, code := range []string{"55P03", "40001", "40P01"} {
			if got := s.Classify(s.Blameless("mark", state(code))); got != store.ClassContended {
				t.Errorf("%s is of class %v, want contended", code, got)
			}
		}
	})
	t.Run("C17_locks_of_others_and_what_the_server_lacks_are_no_messages_doing", func(t *testing.T) {
		for _, code := range []string{"55P03", "53100", "53200", "53300", "58030", "25006"} {
			if !s.IsStoreFault(s.Blameless("mark", state(code))) {
				t.Errorf("%s is taken for a message's doing", code)
			}
		}
		for _, file := range []string{"nodeModifyTable.c", "predicate.c", "deadlock.c"} {
			for _, code := range []string{"40001", "40P01"} {
				if !s.IsStoreFault(fmt.Errorf("update: %w", &stated{state: code, File: file, Routine: "ExecUpdate"})) {
					t.Errorf("%s of %s is taken for a message's doing", code, file)
				}
				if s.IsStoreFault(&stated{state: code, File: "pl_exec.c", Routine: "exec_stmt_raise"}) {
					t.Errorf("%s that a function raised is never charged", code)
				}
			}
		}
		for _, code := range []string{"40001", "40P01", "53400", "57P01", "57014", "23505", ""} {
			if s.IsStoreFault(state(code)) {
				t.Errorf("%q is never charged", code)
			}
		}
	})
	t.Run("errors_name_their_remedy", func(t *testing.T) {
		for code, says := range map[string]string{
			"42P01": "semel migrate up", "42501": "grant", "25006": "target_session_attrs", "53300": "max_connections", "26000": "default_query_exec_mode",
			"42P05": "default_query_exec_mode", "42703": "semel migrate up",
		} {
			if err := s.Blameless("mark", state(code)); !strings.Contains(err.Error(), says) {
				t.Errorf("%s: %v does not say %q", code, err, says)
			}
		}
	})
	t.Run("advice_about_semels_tables_is_not_given_about_others", func(t *testing.T) {
		for _, code := range []string{"42P01", "42703", "42501"} {
			err := s.Hint(state(code))
			if strings.Contains(err.Error(), "emel") || Remedy(state(code), false) != "" || Remedy(state(code), true) == "" {
				t.Errorf("%s: %v", code, err)
			}
		}
		if err := s.Hint(state("53100")); !strings.Contains(err.Error(), "free space") || Remedy(state("53100"), false) == "" {
			t.Errorf("of a full disk is said: %v", err)
		}
	})
}

func TestArraysInTextForm(t *testing.T) {
	got := Arrays(2, []any{int64(-1), []byte("a\"\\,{}\x00"), int64(2), []byte(nil), int64(3), []byte{}})
	if got[0] != "{-1,2,3}" || got[1] != `{"\\x61225c2c7b7d00",NULL,"\\x"}` {
		t.Errorf("got %q", got)
	}
	if got := Arrays(3, nil); got[2] != "{}" {
		t.Errorf("got %q, want empty arrays", got)
	}
	got = Columns([]any{[]int64{7, -1}, []string{`a"\,{}`, "", "NULL"}, [][]byte{nil, {}}})
	if got[0] != "{7,-1}" || got[1] != `{"a\"\\,{}","","NULL"}` || got[2] != `{NULL,"\\x"}` {
		t.Errorf("got %q", got)
	}
}

func TestNamesInPostgres(t *testing.T) {
	for _, c := range []struct {
		schema, prefix string
		ok             bool
	}{
		{"", "", true}, {"Sales-2", "x_", true}, {"größe", "", true},
		{`a"b`, "", false}, {"a'b", "", false}, {"a\x00", "", false}, {"{prefix}", "", false}, {strings.Repeat("s", 64), "", false},
		{"", "Semel_", false}, {"", "x.y", false},
	} {
		if _, err := OpenPostgres(nil, statements, Options{Schema: c.schema, Prefix: c.prefix}); (err == nil) != c.ok {
			t.Errorf("schema %q, prefix %q: %v", c.schema, c.prefix, err)
		}
	}
	t.Run("trap_109_every_table_is_named_with_its_schema", func(t *testing.T) {
		for name, text := range sqlform.ByName(mustPostgres(t, Options{Schema: "Sales"}).Postgres) {
			rest := strings.ReplaceAll(text, `"Sales".semel_`, "")
			// PostgreSQL creates an index in the schema of its table.
			rest = strings.ReplaceAll(rest, "create index concurrently if not exists semel_", "")
			// These statements search names in the catalog.
			inCatalogue := strings.HasPrefix(name, "Lint") || name == "Rights"
			if strings.Contains(rest, "semel_") && !inCatalogue {
				t.Errorf("%s: a name has no schema: %s", name, text)
			}
		}
	})
}

func TestForbiddenStatements(t *testing.T) {
	without := func(t *testing.T, words ...string) {
		t.Helper()
		for name, text := range sqlform.ByName(mustPostgres(t, Options{}).Postgres) {
			for _, word := range words {
				if slices.Contains(strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return r != '_' && !unicode.IsLetter(r) }), word) {
					t.Errorf("%s says %s: %s", name, word, text)
				}
			}
		}
	}
	t.Run("trap_110_trap_T39_none_notifies_or_listens", func(t *testing.T) { without(t, "notify", "pg_notify", "listen") })
	t.Run("trap_111_none_sets_a_savepoint", func(t *testing.T) { without(t, "savepoint") })
	t.Run("trap_108_trap_T7_none_takes_a_lock_of_the_session", func(t *testing.T) { without(t, "pg_advisory_lock", "pg_try_advisory_lock") })
}

func mustPostgres(t *testing.T, o Options) *DB {
	t.Helper()
	s, err := OpenPostgres(nil, statements, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestPostgresViolationsNameTheirConstraint(t *testing.T) {
	for _, c := range []struct {
		state, name, asked string
		want               bool
	}{
		{"23505", "invoices_number_key", "invoices_number_key", true},
		{"23P01", "no_overlap", "no_overlap", true},
		{"23505", "invoices_number_key", "invoices_pkey", false},
		{"23505", "", "", false},
		{"23503", "invoices_number_key", "invoices_number_key", false},
	} {
		err := fmt.Errorf("inserting: %w", &stated{state: c.state, ConstraintName: c.name})
		if got := Violates(err, c.asked); got != c.want {
			t.Errorf("%s %q violates %q: %t, want %t", c.state, c.name, c.asked, got, c.want)
		}
	}
}
