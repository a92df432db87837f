//go:build unix

package days

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/faults"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/store/sqlsuite"
	"github.com/semel-go/semel/itest/worlds/children"
	"github.com/semel-go/semel/itest/worlds/processes"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
)

// fixture is a database with a store.
type fixture struct {
	dsn   string
	db    *sql.DB
	store *sqlstore.Store
}

func open(t *testing.T) *fixture {
	t.Helper()
	dsn := services.Postgres(t)
	services.Hurry(t, dsn)
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	s, err := sqlstore.Postgres(db, sqlstore.Options{})
	if err == nil {
		_, err = s.Migrate(t.Context())
	}
	if err == nil {
		_, err = db.Exec("create table effects (n bigint not null)")
	}
	if err != nil {
		t.Fatal(err)
	}
	return &fixture{dsn, db, s}
}

// start starts a child process.
func (s *fixture) start(t *testing.T, o order) *exec.Cmd {
	t.Helper()
	o.DSN = s.dsn
	c := children.Command(context.WithoutCancel(t.Context()), t, o)
	c.Stderr = os.Stderr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	return c
}

// runKilled runs a child process and reports whether it was killed. Any other failure fails the test.
func (s *fixture) runKilled(t *testing.T, o order) bool {
	t.Helper()
	return wasKilled(t, s.start(t, o).Wait())
}

func wasKilled(t *testing.T, err error) bool {
	t.Helper()
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != -1) {
		t.Fatalf("a process that was not killed failed: %v", err)
	}
	return err != nil
}

func (s *fixture) count(t *testing.T, query string, args ...any) (n int) {
	t.Helper()
	if err := s.db.QueryRow(query, args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// commitMarks commits a batch with the given ids, records the outcome as for new messages, and returns the
// store's verdict (new, duplicate, …) for each id.
func commitMarks(t *testing.T, s *sqlstore.Store, consumer string, as store.Outcome, ids ...string) []store.Verdict {
	t.Helper()
	scope, err := s.Scope(t.Context(), consumer, "shop", 0)
	if err != nil {
		t.Fatal(err)
	}
	all := make([]store.Mark, len(ids))
	for i, id := range ids {
		all[i] = store.Mark{Scope: scope, ID: []byte(id), As: as}
	}
	b, v := sqlsuite.Begin[*sql.Tx](t, s, store.TxOptions{}, all)
	end := store.Ending{}
	for i := range v {
		if v[i].Kind == store.Old {
			end.Trim = append(end.Trim, i)
		}
		if v[i].Kind == store.Fresh && as == store.Parked {
			end.Rows = append(end.Rows, store.Row{Mark: i, State: store.StateParked, Reason: semel.ReasonExhausted, Message: &semel.Message{}})
		}
	}
	if r := b.Commit(t.Context(), end); r.Outcome != store.Committed {
		t.Fatalf("the commit says %+v", r)
	}
	return v
}

// askStore asks the store whether ids are new or duplicates, returns the answers, and rolls back.
func askStore(t *testing.T, s *sqlstore.Store, consumer string, ids ...string) []store.Verdict {
	t.Helper()
	scope, err := s.Scope(t.Context(), consumer, "shop", 0)
	if err != nil {
		t.Fatal(err)
	}
	all := make([]store.Mark, len(ids))
	for i, id := range ids {
		all[i] = store.Mark{Scope: scope, ID: []byte(id), As: store.Applied}
	}
	return sqlsuite.Asked[*sql.Tx](t, s, all...)
}

var (
	isApplied = store.Verdict{Kind: store.Seen, Was: store.Applied}
	isParked  = store.Verdict{Kind: store.Seen, Was: store.Parked}
	isOld     = store.Verdict{Kind: store.Old}
	isFresh   = store.Verdict{Kind: store.Fresh}
)

// newDatedStore returns a consumer's store with daily partitions.
func (s *fixture) newDatedStore(t *testing.T, consumer string) *sqlstore.Store {
	t.Helper()
	own, err := s.store.Dated(t.Context(), datedOptions(consumer))
	if err != nil {
		t.Fatal(err)
	}
	return own
}

// everyStatement runs a child for each statement that the child sends, and kills the child before or after this
// statement. The function look checks the result of each run.
func everyStatement(t *testing.T, s *fixture, do work, prepare func(consumer string), look func(t *testing.T, consumer string)) {
	kills := 0
	for _, after := range []bool{false, true} {
		for n := int64(1); ; n++ {
			consumer := fmt.Sprintf("%s-%d-%v", do, n, after)
			prepare(consumer)
			if !s.runKilled(t, order{Consumer: consumer, Work: do, Statement: n, After: after}) {
				break
			}
			kills++
			look(t, consumer)
			if t.Failed() {
				t.Fatalf("it was killed at statement %d, after it: %v", n, after)
			}
		}
	}
	if t.Logf("%d kills", kills); kills < 20 {
		t.Errorf("it was killed %d times", kills)
	}
}

func TestWhoDropsDaysIsKilled(t *testing.T) {
	s := open(t)
	t.Run("H3_at_each_of_its_statements_and_another_ends_the_work", func(t *testing.T) {
		var late, held, young string
		everyStatement(t, s, reaps, func(consumer string) {
			day := sqlsuite.Today(t)
			late, held, young = uuid(day, -5, 1), uuid(day, -4, 2), uuid(day, -1, 3)
			own := s.newDatedStore(t, consumer)
			if err := own.Retain(t.Context(), store.Retention{Consumer: consumer, Keep: 48 * time.Hour}); err != nil {
				t.Fatal(err)
			}
			commitMarks(t, own, consumer, store.Applied, late, young)
			commitMarks(t, own, consumer, store.Parked, held)
		}, func(t *testing.T, consumer string) {
			own := s.newDatedStore(t, consumer)
			first := askStore(t, own, consumer, late, held, young)
			if first[0] != isApplied && first[0] != isOld || first[1] != isParked || first[2] != isApplied {
				t.Errorf("after the kill the verdicts are %+v", first)
			}
			for began := time.Now(); time.Since(began) < 20*time.Second; processes.Pause(t.Context(), 10*time.Millisecond) {
				// The pass may fail because of a lock: the server may not have noticed yet that the child
				// process is dead.
				if err := pass(t.Context(), own, consumer); err != nil && own.Classify(err) != store.ClassContended {
					t.Error(err)
				}
				if s.countDays(t, consumer) == 7 {
					break
				}
			}
			if v := askStore(t, own, consumer, late, held, young); !slices.Equal(v, []store.Verdict{isOld, isParked, isApplied}) {
				t.Errorf("when another had ended it the verdicts are %+v", v)
			}
			// seven partitions: the partition that is kept, the partitions of today and of the two days before, and the
			// partitions of the three coming days
			if days := s.countDays(t, consumer); days != 7 {
				t.Errorf("%d days stand", days)
			}
			if err := own.Check(t.Context()); err != nil {
				t.Error(err)
			}
		})
	})
}

// countDays returns the number of a consumer's partitions.
func (s *fixture) countDays(t *testing.T, consumer string) int {
	t.Helper()
	return s.count(t, `select count(*) from semel_dated d join pg_inherits h on h.inhparent = to_regclass('semel_markers_' || d.number)
where d.consumer = $1 and h.inhrelid::regclass::text ~ '_[0-9]{8}$'`, []byte(consumer))
}

func TestWhoMovesAConsumerIsKilled(t *testing.T) {
	s := open(t)
	var late, parked, young, fresh string
	mark := func(consumer string) {
		day := sqlsuite.Today(t)
		late, parked, young, fresh = uuid(day, -60, 1), uuid(day, -1, 2), uuid(day, -1, 3), uuid(day, 0, 4)
		commitMarks(t, s.store, consumer, store.Applied, late, young)
		commitMarks(t, s.store, consumer, store.Parked, parked)
	}
	same := func(t *testing.T, consumer string, of *sqlstore.Store) {
		t.Helper()
		if v := askStore(t, of, consumer, late, parked, young, fresh); !slices.Equal(v, []store.Verdict{isApplied, isParked, isApplied, isFresh}) {
			t.Errorf("the verdicts are %+v", v)
		}
	}
	t.Run("trap_T80_at_each_statement_of_its_begin", func(t *testing.T) {
		everyStatement(t, s, begins, mark, func(t *testing.T, consumer string) {
			same(t, consumer, s.store)
			if err := s.store.BeginMove(t.Context(), datedOptions(consumer)); err != nil {
				t.Error(err)
			}
			same(t, consumer, s.store)
			same(t, consumer, s.newDatedStore(t, consumer))
		})
	})
	t.Run("trap_T80_at_each_statement_of_its_end", func(t *testing.T) {
		everyStatement(t, s, ends, func(consumer string) {
			mark(consumer)
			if err := s.store.BeginMove(t.Context(), datedOptions(consumer)); err != nil {
				t.Fatal(err)
			}
		}, func(t *testing.T, consumer string) {
			own := s.newDatedStore(t, consumer)
			same(t, consumer, own)
			if err := own.Check(t.Context()); err != nil {
				t.Error(err)
			}
			if _, err := s.store.EndMove(t.Context(), consumer); err != nil {
				t.Error(err)
			}
			same(t, consumer, own)
			same(t, consumer, s.newDatedStore(t, consumer))
			if n := s.count(t, "select count(*) from semel_markers m join semel_scopes s on s.number = m.scope where s.consumer = $1", []byte(consumer)); n != 0 {
				t.Errorf("%d markers are left in the table of all", n)
			}
			if n := s.count(t, "select count(*) from pg_class where relname like '%by_time'"); n != 0 {
				t.Errorf("%d indexes by time are left, which each message pays for", n)
			}
			if err := own.Check(t.Context()); err != nil {
				t.Error(err)
			}
			s.retryRow(t, consumer, own, parked)
		})
	})
}

// retryRow retries a parked row, and checks that the row's marker is in the state "waiting" again.
func (s *fixture) retryRow(t *testing.T, consumer string, own *sqlstore.Store, id string) {
	t.Helper()
	rows, err := s.store.Rows(t.Context(), store.RowFilter{Consumer: consumer})
	if err != nil || len(rows) != 1 {
		t.Fatalf("the rows are %+v, %v", rows, err)
	}
	if err := errors.Join(s.store.Requeue(t.Context(), store.Act{Verb: "retry", Who: "me", Why: "it"}, rows[0].Seen())...); err != nil {
		t.Error(err)
	}
	if v := askStore(t, own, consumer, id); v[0].Was != store.Waiting {
		t.Errorf("the marker of a retried row is %+v", v)
	}
}

func TestAConsumerMovesWhileItsProcessesWork(t *testing.T) {
	s := open(t)
	const consumer = "billing"
	points := []faults.Point{faults.AfterMark, faults.BeforeCommit, faults.AfterCommit, faults.AfterEffect}
	kills, seed, day := 0, 0, sqlsuite.Today(t)
	// pair starts processes that consume the same messages and kill themselves.
	pair := func(first int, mortal bool, all ...work) (running []*exec.Cmd) {
		for _, w := range all {
			seed++
			o := order{Consumer: consumer, Work: w, Day: day, Seed: seed, First: first}
			if mortal {
				o.Point, o.Hit = points[seed%4], int64(1+seed%9)
			}
			running = append(running, s.start(t, o))
		}
		return running
	}
	wait := func(running []*exec.Cmd) {
		for _, c := range running {
			if wasKilled(t, c.Wait()) {
				kills++
			}
		}
	}
	wait(pair(0, true, before, before))
	if err := s.store.BeginMove(t.Context(), datedOptions(consumer)); err != nil {
		t.Fatal(err)
	}
	for i := range 3 { // as in a rolling deployment
		wait(pair(i*100, true, before, handles))
		wait(pair(i*100, true, pipes, before))
	}
	wait(pair(0, false, before, pipes))
	wait(pair(200, false, handles, before))
	// The move ends while processes of the newer release run. The process that ends the move is killed a few
	// times.
	for n := range 3 {
		running := pair(400+n*100, true, handles, pipes)
		s.runKilled(t, order{Consumer: consumer, Work: ends, Statement: int64(5 + 10*n)})
		wait(running)
	}
	running := pair(800, false, handles, pipes, handles)
	done, err := s.store.EndMove(t.Context(), consumer)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the end: %+v", done)
	wait(running)
	for first := 0; first < 1100; first += 100 {
		wait(pair(min(first, 800), false, pipes))
	}
	total := s.count(t, "select count(distinct n) from effects")
	t.Run("case_15_lost_0_doubled_0", func(t *testing.T) {
		if n := s.count(t, "select count(*) from effects"); n != 1100 || total != 1100 {
			t.Errorf("%d effects of %d messages, of 1100; %d kills", n, total, kills)
		}
		if n := s.count(t, "select count(*) from semel_markers_1 where outcome = 1"); n != 1100 {
			t.Errorf("%d markers lie in days", n)
		}
		t.Logf("%d kills", kills)
	})
	t.Run("law_12_who_marks_in_the_table_of_all_is_kept_from_it", func(t *testing.T) {
		if !done.Fenced {
			t.Fatalf("no fence stands: %+v", done)
		}
		_, err := s.db.Exec("insert into semel_markers (scope, at, outcome, version, id) select number, now(), 1, 0, 'x' from semel_scopes where consumer = $1", []byte(consumer))
		if err == nil || !strings.Contains(err.Error(), "semel_markers_1_moved") {
			t.Errorf("the error is %v", err)
		}
		if _, err := s.store.Scope(t.Context(), consumer, "other", 0); !errors.Is(err, semel.ErrState) {
			t.Errorf("the error is %v", err)
		}
	})
}
