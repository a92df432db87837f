package sqlsuite

import (
	"context"
	"errors"
	"os"
	"regexp"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// EveryWay reports whether every case of storetest runs with each way to reach a store (SEMEL_TEST_FORMS=all).
func EveryWay() bool { return os.Getenv("SEMEL_TEST_FORMS") == "all" }

// OneWay reports whether the cases of storetest run with only one way to reach each store (SEMEL_TEST_FORMS=one), as in
// `make test`.
func OneWay() bool { return os.Getenv("SEMEL_TEST_FORMS") == "one" }

// OneLine is a filter that leaves out most test cases for pairs of rows, which are a third of the suite. Use OneLine
// for a store that differs only in batches or markers from a store that runs the whole suite.
func OneLine(name string) bool {
	table, of := strings.CutPrefix(name, "law_16_every_pair_of_rows_of_an_identity/")
	return !of || table == "the_first_retried" || EveryWay()
}

// Ways chooses cases of storetest for a store that can be reached in several ways: with different protocols of its
// driver, through a pooler, or in a database with objects that shadow built-in ones. With the first of these ways, all
// cases run. During the runs of the first way, Ways is the tracer of the connections, and records the statements of
// each case and the results of the statements. With a further way, only as many cases run as are needed to send all
// recorded statements.
type Ways struct {
	mutex sync.Mutex
	cases []string                   // guarded by mutex: the cases of the first way, in order
	sent  map[string]map[string]bool // guarded by mutex: the statements of each case
	noted bool                       // guarded by mutex: whether the first way has ended
}

// First returns the filter for the cases that run with the first way to reach the store. The parameter only selects
// these cases; if only is nil, all cases run.
func (w *Ways) First(only func(name string) bool) func(name string) bool {
	return func(name string) bool {
		w.mutex.Lock()
		defer w.mutex.Unlock()
		w.cases = append(w.cases, name)
		return only == nil || only(name)
	}
}

// Further returns the filter for the cases of a way (a driver with its options) after the first way. The filter selects
// as few cases as are needed to send all statements that the first way sent, and all cases that the first way did not
// run. If the first way did not run, for example because of -run, the filter selects all cases. If one way is enough,
// the filter selects no cases.
func (w *Ways) Further() func(name string) bool {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.noted = true
	if OneWay() {
		return func(string) bool { return false }
	}
	if len(w.sent) == 0 || EveryWay() {
		return nil
	}
	first, chosen := map[string]bool{}, w.selectCases()
	for _, name := range w.cases {
		first[name] = true
	}
	return func(name string) bool { return chosen[name] || !first[name] }
}

// selectCases chooses cases greedily: in each step, selectCases takes the case with the most statements that no chosen
// case sends, until the chosen cases send all statements. The caller holds the mutex.
func (w *Ways) selectCases() (chosen map[string]bool) {
	left := map[string]bool{}
	for _, sent := range w.sent {
		for what := range sent {
			left[what] = true
		}
	}
	for chosen = map[string]bool{}; len(left) > 0; {
		most, best := 0, ""
		for _, name := range w.cases {
			n := 0
			for what := range w.sent[name] {
				if left[what] {
					n++
				}
			}
			if n > most {
				most, best = n, name
			}
		}
		chosen[best] = true
		for what := range w.sent[best] {
			delete(left, what)
		}
	}
	return chosen
}

// ofACase matches schema names that differ from case to case.
var ofACase = regexp.MustCompile(`"Case [0-9]+"`)

type sending struct{}

// TraceQueryStart implements pgx.QueryTracer.
func (w *Ways) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	return context.WithValue(ctx, sending{}, data.SQL)
}

// TraceQueryEnd implements pgx.QueryTracer.
func (w *Ways) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryEndData) {
	text, _ := ctx.Value(sending{}).(string)
	var refused *pgconn.PgError
	switch {
	case errors.As(data.Err, &refused):
		text += refused.Code
	case data.Err != nil:
		text += "failed"
	}
	w.note(ofACase.ReplaceAllString(text, "in"))
}

// note records a statement of the current case.
func (w *Ways) note(what string) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.noted || len(w.cases) == 0 {
		return
	}
	name := w.cases[len(w.cases)-1]
	if w.sent == nil {
		w.sent = map[string]map[string]bool{}
	}
	if w.sent[name] == nil {
		w.sent[name] = map[string]bool{}
	}
	w.sent[name][what] = true
}
