package sqlhandler

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/reasonname"
	_ "modernc.org/sqlite"
)

// database returns a SQLite database in memory with one connection.
func database(t *testing.T, schema ...string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	db.SetMaxOpenConns(1)
	for _, s := range schema {
		if _, err := db.ExecContext(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	return db
}

// handle runs the handler in a new transaction. The transaction commits if the handler succeeds.
func handle(t *testing.T, db *sql.DB, h *Handler, m *semel.Message) error {
	t.Helper()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Handle(t.Context(), tx, m); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

func compile(t *testing.T, c Config) *Handler {
	t.Helper()
	h, err := Compile(SQLite(), c)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func body(format string, args ...any) *semel.Message {
	return &semel.Message{Body: fmt.Appendf(nil, format, args...), Origin: semel.Origin{Partition: 3, Offset: 1 << 60}}
}

func TestValuesAreBoundExactly(t *testing.T) {
	db := database(t)
	for _, c := range []struct{ name, json, kind, text string }{
		{"whole number", `12`, "integer", "12"},
		{"negative", `-7`, "integer", "-7"},
		{"beyond 2^53", `9007199254740993`, "integer", "9007199254740993"},
		{"the largest of 64 bits", `9223372036854775807`, "integer", "9223372036854775807"},
		{"beyond 64 bits", `9223372036854775808`, "text", "9223372036854775808"},
		{"fraction", `0.1`, "real", "0.1"},
		{"money", `1234567.89`, "real", "1234567.89"},
		{"trailing zero", `1.50`, "real", "1.5"},
		{"more digits than a float has", `0.1234567890123456789`, "text", "0.1234567890123456789"},
		{"exponent", `1e3`, "real", "1000.0"},
		{"below a float", `1e-400`, "text", "1e-400"},
		{"text", `"12"`, "text", "12"},
		{"empty text", `""`, "text", ""},
		{"text with NUL", `"a\u0000b"`, "text", "a\x00b"},
		{"text with escapes", `"\u00e9\n\"\ud83d\ude00"`, "text", "é\n\"😀"},
		{"true", `true`, "integer", "1"},
		{"object", `{"b": 1, "a": [2]}`, "text", `{"b": 1, "a": [2]}`},
		{"list", `[1, 2]`, "text", `[1, 2]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := compile(t, Config{Params: []Param{{Name: "v", Selector: "body:/v"}}, Statements: []Statement{{SQL: "select :v"}}})
			values, err := h.values(body(`{"v": %s}`, c.json))
			if err != nil {
				t.Fatal(err)
			}
			var kind, text string
			row := db.QueryRowContext(t.Context(), "select typeof(?), cast(? as text)", values[0], values[0])
			if err := row.Scan(&kind, &text); err != nil || kind != c.kind || text != c.text {
				t.Errorf("%s %q (%v), want %s %q", kind, text, err, c.kind, c.text)
			}
		})
	}
}

func TestHeadersAndKeysCanBeBound(t *testing.T) {
	m := body(`not JSON`)
	m.Key, m.Topic = []byte{0xff, 0}, "payments"
	m.Headers = semel.Headers{{Name: "ce-id", Value: []byte("e1")}, {Name: "Trace", Value: []byte("t")}}
	for selector, want := range map[string]any{
		"key": []byte{0xff, 0}, "topic": "payments", "id": "e1", "header:trace": "t", "body:": "not JSON",
		"const:EUR": "EUR", "partition": int64(3), "offset": int64(1 << 60), "subject?": nil, "header:x?": nil,
	} {
		h := compile(t, Config{Params: []Param{{Name: "v", Selector: selector}}, Statements: []Statement{{SQL: "select :v"}}})
		values, err := h.values(m)
		if err != nil || fmt.Sprintf("%T %v", values[0], values[0]) != fmt.Sprintf("%T %v", want, want) {
			t.Errorf("%s: %T %v (%v), want %T %v", selector, values, values, err, want, want)
		}
	}
}

func TestAMissingValueEndsTheMessageInsteadOfBindingNULL(t *testing.T) {
	for _, c := range []struct {
		name, body string
		reason     semel.Reason
		says       string
	}{
		{"missing", `{}`, reasonname.MissingParameter, "amount: body:/amount has no value"},
		{"null", `{"amount": null}`, reasonname.MissingParameter, "amount: body:/amount is null"},
		{"no JSON", `amount`, semel.ReasonMalformed, ""},
		{"repeated member names", `{"amount": 1, "amount": 2}`, semel.ReasonMalformed, ""},
		{"lone surrogate", `{"amount": "\ud800"}`, semel.ReasonMalformed, ""},
		{"invalid UTF-8", "{\"amount\": \"\xff\"}", semel.ReasonMalformed, ""},
		{"empty body", ``, reasonname.MissingParameter, "has no value"},
	} {
		t.Run(c.name, func(t *testing.T) {
			db := database(t, "create table a (v)")
			h := compile(t, Config{Params: []Param{{Name: "amount", Selector: "body:/amount"}}, Statements: []Statement{{SQL: "insert into a values (:amount)"}}})
			var failed *semel.HandlerError
			err := handle(t, db, h, &semel.Message{Body: []byte(c.body)})
			if !errors.As(err, &failed) || failed.Decision != semel.DecidePermanent || failed.Reason != c.reason || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v", err)
			}
			if n := count(t, db, "a"); n != 0 {
				t.Errorf("%d rows", n)
			}
		})
	}
	t.Run("optional is NULL", func(t *testing.T) {
		db := database(t, "create table a (v)")
		h := compile(t, Config{Params: []Param{{Name: "v", Selector: "body:/v?"}}, Statements: []Statement{{SQL: "insert into a values (:v)"}}})
		for _, m := range []*semel.Message{body(`{}`), body(`{"v": null}`)} {
			if err := handle(t, db, h, m); err != nil {
				t.Error(err)
			}
		}
		if n := count(t, db, "a where v is null"); n != 2 {
			t.Errorf("%d rows of NULL", n)
		}
	})
}

func count(t *testing.T, db *sql.DB, from string) (n int) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), "select count(*) from "+from).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestTheStatementDecidesAboutAnotherNumberOfRows(t *testing.T) {
	one := int64(1)
	for _, c := range []struct {
		otherwise Otherwise
		want      semel.Decision
	}{
		{OtherwiseUnmet, semel.DecidePreconditionFailed}, {OtherwisePark, semel.DecidePark},
		{OtherwiseDiscard, semel.DecideDiscard}, {OtherwiseFail, 0},
	} {
		db := database(t, "create table a (id, v)", "insert into a values (1, 0)")
		h := compile(t, Config{Params: []Param{{Name: "id", Selector: "body:/id"}}, Statements: []Statement{
			{SQL: "update a set v = v + 1 where id = :id", Rows: &one, Otherwise: c.otherwise}}})
		if err := handle(t, db, h, body(`{"id": 1}`)); err != nil {
			t.Errorf("one row: %v", err)
		}
		err := handle(t, db, h, body(`{"id": 2}`))
		var decided *semel.HandlerError
		errors.As(err, &decided)
		if err == nil || c.want == 0 != (decided == nil) || decided != nil && (decided.Decision != c.want || decided.Reason != semel.ReasonPrecondition) {
			t.Errorf("otherwise %d: %v", c.otherwise, err)
		}
	}
}

func TestErrorsNameTheStatement(t *testing.T) {
	one := int64(1)
	for want, c := range map[string]Config{
		"statement 2 changed 0 rows, not 1":                {},
		"statement 2 of step pay changed 0 rows, not 1":    {Step: "pay"},
		`statement 2 of type "paid" changed 0 rows, not 1`: {Type: "paid"},
	} {
		db := database(t, "create table a (id, v)")
		c.Statements = []Statement{{SQL: "select 1"}, {SQL: "update a set v = 1", Rows: &one}}
		if err := handle(t, db, compile(t, c), body(`{}`)); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestStatementsThatChangeNothingAreReported(t *testing.T) {
	db := database(t, "create table a (id, v)")
	var said []int
	h := compile(t, Config{
		Params: []Param{{Name: "id", Selector: "body:/id"}},
		Statements: []Statement{{SQL: "select :id"}, {SQL: "update a set v = 1 where id = :id"},
			{SQL: "insert into a values (:id, 0)"}},
		NoEffect: func(_ *semel.Message, statement int) { said = append(said, statement) },
	})
	for range 2 {
		if err := handle(t, db, h, body(`{"id": 1}`)); err != nil {
			t.Fatal(err)
		}
	}
	if fmt.Sprint(said) != "[1]" {
		t.Errorf("statements without effect: %v, want the update of the first message", said)
	}
}

func TestOnlyAViolationOfTheBusinessKeyIsADuplicate(t *testing.T) {
	db := database(t, "create table a (id unique, other unique)", "insert into a values (1, 1)")
	h := compile(t, Config{
		Params:     []Param{{Name: "id", Selector: "body:/id"}, {Name: "other", Selector: "body:/other"}},
		Statements: []Statement{{SQL: "insert into a values (:id, :other)"}},
		Violates:   func(err error) bool { return strings.Contains(err.Error(), "a.id") },
	})
	var decided *semel.HandlerError
	for _, c := range []struct {
		body      string
		duplicate bool
	}{{`{"id": 1, "other": 2}`, true}, {`{"id": 2, "other": 1}`, false}} {
		err := handle(t, db, h, body("%s", c.body))
		if got := errors.As(err, &decided) && decided.Decision == semel.DecideDuplicate; err == nil || got != c.duplicate {
			t.Errorf("%s: %v, want a duplicate: %v", c.body, err, c.duplicate)
		}
		decided = nil
	}
}

func TestStatementsArePreparedOnceATransaction(t *testing.T) {
	db := database(t, "create table a (id)")
	h := compile(t, Config{Params: []Param{{Name: "id", Selector: "body:/id"}}, Statements: []Statement{{SQL: "insert into a values (:id)"}}})
	seen := map[*sql.Stmt]bool{}
	for range 3 {
		tx, err := db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 4 {
			ctx, cancel := context.WithCancel(t.Context())
			if err := h.Handle(ctx, tx, body(`{"id": %d}`, i)); err != nil {
				t.Fatal(err)
			}
			cancel() // the context ends with the first message, but the statement must stay prepared for the next message
			seen[h.preparedStatements.statements[0]] = true
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
	}
	if n := count(t, db, "a"); n != 12 || len(seen) != 3 {
		t.Errorf("%d rows, %d statements, want 12 and 3", n, len(seen))
	}
}

func TestParametersThatOccurTwiceAreBoundByDialect(t *testing.T) {
	c := Config{Params: []Param{{Name: "a", Selector: "id"}, {Name: "b", Selector: "key"}}, Statements: []Statement{{SQL: "select :b, ':a', :a, :b::text ; "}}}
	for want, d := range map[string]Dialect{
		"select ?, ':a', ?, ?::text [1 0 1]":  SQLite(),
		"select $1, ':a', $2, $1::text [1 0]": Postgres(),
	} {
		h, err := Compile(d, c)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(strings.TrimSpace(h.statements[0].text), " ", h.statements[0].args); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestCompileNamesEveryFault(t *testing.T) {
	_, err := Compile(SQLite(), Config{
		Params:     []Param{{Name: "a", Selector: "bdy:/a"}},
		Statements: []Statement{{SQL: "commit"}, {SQL: "select :a, :b"}},
	})
	for _, want := range []string{"parameter a: ", "statement 1: COMMIT", "statement 2: parameter :b is not bound"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if _, err := Compile(SQLite(), Config{}); err == nil {
		t.Error("a handler without statements compiles")
	}
}

func TestDecimalsAreComparedExactly(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"1.50", "15e-1", true}, {"0.0", "-0", true}, {"100", "1e2", true}, {"0.001", "1e-3", true}, {"-1", "-1.0", true},
		{"1", "-1", false}, {"1", "10", false}, {"0.1", "0.10000000000000001", false}, {"1e99999999999", "1e99999999999", false},
	} {
		if sameDecimal(c.a, c.b) != c.same {
			t.Errorf("%s and %s: %v", c.a, c.b, !c.same)
		}
	}
}
