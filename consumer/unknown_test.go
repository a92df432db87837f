package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/internal/eventkind"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/store"
)

// lostCommit is the result of a commit whose response did not arrive.
var lostCommit = store.Result{Outcome: store.CommitUnknown, Class: store.ClassDown, Culprit: store.NoCulprit, Err: errors.New("connection reset")}

// lostReplies contains the possible outcomes of a commit whose response does not arrive. The field runs is how often a
// handler must run.
var lostReplies = []struct {
	name string
	what func(ctx context.Context, commit func(context.Context) store.Result)
	runs int
}{
	{"committed", func(ctx context.Context, commit func(context.Context) store.Result) { commit(ctx) }, 1},
	{"not committed", func(ctx context.Context, commit func(context.Context) store.Result) { commit(cancelledContext()) }, 2},
	{"committed later", func(_ context.Context, commit func(context.Context) store.Result) {
		time.AfterFunc(2*time.Second, func() { commit(context.Background()) })
	}, 1},
	{"rolled back later", func(_ context.Context, commit func(context.Context) store.Result) {
		time.AfterFunc(2*time.Second, func() { commit(cancelledContext()) })
	}, 2},
}

// cancelledContext returns a cancelled context, with which a memstore rejects the commit.
func cancelledContext() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

func TestACommitThatLastsTooLongForItsBatch(t *testing.T) {
	bubble(t, "trap_T82_an_unknown_commit_cuts_the_batch_until_it_is_short_enough", func(t *testing.T) {
		st, commits := watch(memstore.New()), 0
		size := 0
		st.onBegin = func(_ context.Context, marks []store.Mark) error { size = len(marks); return nil }
		st.onCommit = func(ctx context.Context, commit func(context.Context) store.Result) store.Result {
			if commits++; size > 10 && commits < 100 {
				commit(cancelledContext())
				return lostCommit
			}
			return commit(ctx)
		}
		c := config(newListSource(numbered("m", 100)...))
		c.Workers, c.Batch.MaxSize = 1, 100
		if counts := runs(t, st, add, c); counts.Applied != 100 || commits > 60 {
			t.Errorf("%+v after %d commits", counts, commits)
		}
	})
}

func TestACommitWhoseReplyIsLost(t *testing.T) {
	bubble(t, "case_3_an_unknown_commit_is_resolved_by_marking_again_and_each_message_is_applied_once", func(t *testing.T) {
		for _, reply := range lostReplies {
			for _, lanes := range []consumer.LaneMode{consumer.LanesPartition, consumer.LanesNone} {
				st, first, seen := watch(memstore.New()), true, &witness{}
				var mutex sync.Mutex
				st.onCommit = func(ctx context.Context, commit func(context.Context) store.Result) store.Result {
					mutex.Lock()
					lose := first
					first = false
					mutex.Unlock()
					if !lose {
						return commit(ctx)
					}
					reply.what(ctx, commit)
					return lostCommit
				}
				source := newListSource(numbered("m", 10)...)
				c := config(source)
				c.Lanes, c.Workers, c.Observers, c.Retry.MaxAttempts = lanes, 1, []semel.Observer{seen}, 1
				ran := map[string]int{}
				counts := runs(t, st, func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
					ran[m.Identity.ID]++
					return add(ctx, tx, m)
				}, c)
				if counts.Applied != 10 || counts.Duplicates != 0 || counts.Retried != 0 || len(source.settled) != 10 || len(seen.eventsOf(eventkind.Unknown)) != 1 {
					t.Errorf("%s: %+v, %d settled, %d events", reply.name, counts, len(source.settled), len(seen.eventsOf(eventkind.Unknown)))
				}
				for i := range 10 {
					if id := fmt.Sprint("m", i); effect(t, st.Store, id) != "1" || ran[id] != reply.runs {
						t.Errorf("%s: %s has effect %q after %d runs, want %d", reply.name, id, effect(t, st.Store, id), ran[id], reply.runs)
					}
				}
			}
		}
	})
	bubble(t, "law_12_a_message_of_an_unknown_commit_is_settled_only_when_its_marker_has_been_seen", func(t *testing.T) {
		st := watch(memstore.New())
		var done atomic.Bool
		st.onCommit = func(ctx context.Context, commit func(context.Context) store.Result) store.Result {
			if done.Load() {
				return commit(ctx)
			}
			commit(cancelledContext())
			return lostCommit
		}
		source := newListSource(numbered("m", 10)...)
		run := start(t, mustNew(t, st, add, config(source)))
		pass(10 * time.Second)
		if source.isSettled(0) != 0 {
			t.Error("a message was settled before its marker was seen")
		}
		done.Store(true)
		if err := run.wait(); err != nil || len(source.settled) != 10 || effect(t, st.Store, "m9") != "1" {
			t.Errorf("%v, %d settled, effect %s", err, len(source.settled), effect(t, st.Store, "m9"))
		}
	})
	bubble(t, "trap_T43_the_row_of_a_message_whose_parking_commit_was_lost_is_written_once", func(t *testing.T) {
		for _, reply := range lostReplies {
			st, lose := watch(memstore.New()), 1
			st.onCommit = func(ctx context.Context, commit func(context.Context) store.Result) store.Result {
				if lose--; lose != 0 {
					return commit(ctx)
				}
				reply.what(ctx, commit)
				return lostCommit
			}
			counts := runs(t, st, func(context.Context, *memstore.Tx, *semel.Message) error { return semel.Park("look") }, config(newListSource(message("1", `{}`), message("1", `{}`), message("1", `{}`))))
			if all := rows(t, st.Store); counts.Parked != 1 || counts.Duplicates != 2 || len(all) != 1 || all[0].Repeated != 2 {
				t.Errorf("%s: %+v, rows %+v", reply.name, counts, all)
			}
		}
	})
}

func TestACommitThatIsRefused(t *testing.T) {
	bubble(t, "case_1_a_commit_refused_without_a_name_is_halved_until_the_message_to_blame_is_alone", func(t *testing.T) {
		for _, named := range []bool{false, true} {
			inner := memstore.New()
			st := watch(inner)
			culprit := -1
			st.onBegin = func(_ context.Context, marks []store.Mark) error {
				culprit = -1
				for i, m := range marks {
					if string(m.ID) == "m11" && m.As == store.Applied {
						culprit = i
					}
				}
				return nil
			}
			st.onCommit = func(ctx context.Context, commit func(context.Context) store.Result) store.Result {
				if culprit < 0 {
					return commit(ctx)
				}
				commit(cancelledContext())
				out := store.Result{Outcome: store.NotCommitted, Class: store.ClassPermanent, Culprit: store.NoCulprit, Err: errors.New("deferred constraint")}
				if named {
					out.Culprit = culprit
				}
				return out
			}
			source := newListSource(numbered("m", 20)...)
			c := config(source)
			c.Workers = 1
			counts := runs(t, st, add, c)
			if counts.Applied != 19 || counts.Parked != 1 || counts.Retried != 0 || counts.Rerun == 0 || len(source.settled) != 20 {
				t.Errorf("%+v, %d settled", counts, len(source.settled))
			}
			if r := row(t, inner, "m11"); r.Attempts != 1 || r.Reason != semel.ReasonPermanent || r.LastError != "deferred constraint" {
				t.Errorf("%+v", r)
			}
			if limit := map[bool]int{false: 12, true: 6}[named]; len(st.begins) > limit {
				t.Errorf("culprit named %v: %d transactions, want at most %d", named, len(st.begins), limit)
			}
		}
	})
	bubble(t, "case_4_copies_are_counted_on_a_row_whose_first_commit_was_refused", func(t *testing.T) {
		st, refuse := watch(memstore.New()), 2
		st.onCommit = func(ctx context.Context, commit func(context.Context) store.Result) store.Result {
			if refuse--; refuse < 0 {
				return commit(ctx)
			}
			commit(cancelledContext())
			return store.Result{Outcome: store.NotCommitted, Class: store.ClassContended, Culprit: store.NoCulprit, Err: errTest}
		}
		counts := runs(t, st, func(context.Context, *memstore.Tx, *semel.Message) error { return semel.Park("look") }, config(newListSource(message("1", `{}`), message("1", `{}`), message("1", `{}`))))
		if all := rows(t, st.Store); counts.Parked != 1 || counts.Duplicates != 2 || len(all) != 1 || all[0].Repeated != 2 {
			t.Errorf("%+v, rows %+v", counts, all)
		}
	})
	bubble(t, "case_1_a_serialization_failure_is_nobodys_attempt", func(t *testing.T) {
		st := memstore.New()
		c := config(newListSource(append(numbered("a", 50), numbered("b", 50)...)...))
		c.Workers, c.Batch.MaxSize, c.Retry.MaxAttempts = 2, 10, 1
		counts := runs(t, st, func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
			n, err := tx.Get("sum")
			if err != nil {
				return err
			}
			pass(time.Millisecond)
			if err := tx.Set("sum", append(n, 'x')); err != nil {
				return err
			}
			return add(ctx, tx, m)
		}, c)
		if counts.Applied != 100 || counts.Parked != 0 || counts.Retried != 0 || len(st.Get("sum")) != 100 {
			t.Errorf("%+v, sum of %d", counts, len(st.Get("sum")))
		}
	})
}
