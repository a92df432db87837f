package postgresfaults

import (
	"context"
	"database/sql"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/internal/eventkind"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/worlds/workload"
)

// hold opens another transaction that writes the marker and the effect of a message.
func (w *world) hold(id string) *sql.Tx {
	w.t.Helper()
	stranger, err := w.db.BeginTx(w.t.Context(), nil)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = stranger.Rollback() })
	if _, err := stranger.Exec(`insert into semel_markers (scope, id, outcome, version, at) select number, $1, 1, 0, now() from semel_scopes`, storedID(id)); err != nil {
		w.t.Fatal(err)
	}
	if _, err := stranger.Exec(`insert into effects values ($1, 'stranger')`, id); err != nil {
		w.t.Fatal(err)
	}
	return stranger
}

// deliverLocked delivers ten messages, one of which another transaction has locked. The function checks that nine
// messages are applied and one message waits.
func deliverLocked(t *testing.T, driver workload.Driver) (w *world, stranger *sql.Tx) {
	t.Helper()
	w = begin(t, settings{driver: driver, dsn: migrateDatabase(t, services.Postgres(t)), change: func(c *consumer.Config) {
		oneWorker(c)
		c.MaxInMemoryWait, c.Retry.MaxDelay = 300*time.Millisecond, 300*time.Millisecond
	}})
	w.deliver("before") // after this delivery the consumer's source is registered
	w.waitApplied("before")
	stranger = w.hold("held")
	neighbours := makeIDs("neighbour", 9)
	w.deliver(append([]string{"held"}, neighbours...)...)
	w.waitApplied(neighbours...)
	w.expectUnacked("held")
	if runs := w.attemptsOf("held"); len(runs) != 0 {
		t.Errorf("the handler ran for what a stranger holds: %v", runs)
	}
	return w, stranger
}

func TestAStrangerThatHoldsAMarker(t *testing.T) {
	t.Run("case_5_is_waited_for_without_an_attempt_and_the_message_runs_when_the_stranger_rolls_back", func(t *testing.T) {
		eachDriver(t, func(t *testing.T, driver workload.Driver) {
			w, stranger := deliverLocked(t, driver)
			if err := stranger.Rollback(); err != nil {
				t.Fatal(err)
			}
			w.waitApplied("held")
			if n := w.countEvents(eventkind.Serial, ""); n != 0 {
				t.Error("a copy in flight made the consumer run its batches one at a time")
			}
		})
	})
	t.Run("trap_T25_the_message_is_a_duplicate_when_the_stranger_commits", func(t *testing.T) {
		eachDriver(t, func(t *testing.T, driver workload.Driver) {
			w, stranger := deliverLocked(t, driver)
			if err := stranger.Commit(); err != nil {
				t.Fatal(err)
			}
			w.waitApplied("held")
			if runs := w.attemptsOf("held"); len(runs) != 0 {
				t.Errorf("the handler ran for a duplicate: %v", runs)
			}
		})
	})
}

func TestTwoConsumersWhoseEffectsDeadlock(t *testing.T) {
	t.Run("case_2_run_one_at_a_time_for_a_while_and_say_so", func(t *testing.T) {
		eachDriver(t, func(t *testing.T, driver workload.Driver) {
			dsn := migrateDatabase(t, services.Postgres(t), `create table accounts (id int primary key, n int not null default 0)`, `insert into accounts values (1), (2)`)
			meet := newBarrier()
			// The messages "up" and "down" lock the same two accounts in opposite orders.
			handler := func(ctx context.Context, exec workload.Exec, m *semel.Message) error {
				first, second := 1, 2
				if strings.HasPrefix(m.Identity.ID, "down") {
					first, second = 2, 1
				}
				const pay = `update accounts set n = n + 1 where id = $1`
				if err := exec(ctx, pay, first); err != nil {
					return err
				}
				meet(ctx, first)
				if err := exec(ctx, pay, second); err != nil {
					return err
				}
				return workload.Effect("here")(ctx, exec, m)
			}
			s := settings{driver: driver, dsn: dsn, through: dsn + "&deadlock_timeout=50ms", handler: handler, change: oneWorker}
			up, down := begin(t, s), begin(t, s)
			up.deliver("up")
			down.deliver("down")
			up.waitApplied("up")
			down.waitApplied("down")
			if up.countEvents(eventkind.Contended, "40P01")+down.countEvents(eventkind.Contended, "40P01") == 0 {
				t.Error("no event reports a deadlock")
			}
			if up.countEvents(eventkind.Serial, "")+down.countEvents(eventkind.Serial, "") == 0 {
				t.Error("no event reports that batches run one at a time")
			}
			ups, downs := makeIDs("up", 200), makeIDs("down", 200)
			up.deliver(ups...)
			down.deliver(downs...)
			up.waitApplied(ups...)
			down.waitApplied(downs...)
			if n := queryOne[int](t, up.db, `select min(n) from accounts`); n != 402 {
				t.Errorf("the accounts are at %d, want 402", n)
			}
		})
	})
}

// newBarrier returns a function that two goroutines call with their number, 1 or 2. The first call of each
// goroutine returns when both goroutines have called the function, or when ctx ends.
func newBarrier() func(ctx context.Context, party int) {
	var once [3]sync.Once
	var here [3]chan struct{}
	for i := range here {
		here[i] = make(chan struct{})
	}
	return func(ctx context.Context, party int) {
		once[party].Do(func() {
			close(here[party])
			select {
			case <-here[3-party]:
			case <-ctx.Done():
			}
		})
	}
}

func TestTwoConsumersOfTheSameMessagesAtEachLevel(t *testing.T) {
	for _, level := range []sql.IsolationLevel{sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable} {
		t.Run(level.String(), func(t *testing.T) {
			t.Run("trap_T23_conflicts_run_again_and_trap_98_nothing_is_lost_doubled_or_charged", func(t *testing.T) {
				eachDriver(t, func(t *testing.T, driver workload.Driver) { compete(t, driver, level) })
			})
		})
	}
}

func compete(t *testing.T, driver workload.Driver, level sql.IsolationLevel) {
	dsn := newCounterDatabase(t)
	s := settings{driver: driver, dsn: dsn, isolation: level, change: func(c *consumer.Config) { c.Batch.MaxSize = 20 },
		handler: func(ctx context.Context, exec workload.Exec, m *semel.Message) error {
			if err := exec(ctx, countOne); err != nil {
				return err
			}
			return workload.Effect("here")(ctx, exec, m)
		}}
	first, second := begin(t, s), begin(t, s)
	ids := makeIDs("m", 200)
	random := rand.New(rand.NewPCG(1, uint64(level)))
	for _, w := range []*world{first, second} {
		random.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
		w.deliver(ids...)
	}
	first.waitApplied(ids...)
	second.waitApplied(ids...)
	first.wantCounter(len(ids))
	if level != sql.LevelReadCommitted {
		return
	}
	t.Run("trap_99_marks_in_any_order_never_deadlock", func(t *testing.T) {
		if n := queryOne[int](t, first.db, `select deadlocks from pg_stat_database where datname = current_database()`); n != 0 {
			t.Errorf("%d deadlocks", n)
		}
	})
}
