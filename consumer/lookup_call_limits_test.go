package consumer_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/eventkind"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/store"
)

// limiting is a store that limits the number of messages in a batch.
type limiting struct {
	*markCounter
	most int
}

func (s *limiting) Limits() store.Limits { return store.Limits{Batch: s.most} }

func TestAnswersThatShareATransaction(t *testing.T) {
	bubble(t, "law_7_as_many_as_the_store_lets_a_batch_have", func(t *testing.T) {
		for _, most := range []int{1, 3} {
			st := &limiting{&markCounter{Store: memstore.New()}, most}
			call := func(context.Context, *semel.Message) (int64, error) {
				pass(time.Millisecond)
				return 1, nil
			}
			counts := callsThen(t, st, call, addAnswer, pureConfig(numbered("m", 60)...))
			if counts.Applied != 60 || slices.Max(st.marks) != most {
				t.Errorf("%d at most: %+v, %v", most, counts, st.marks)
			}
		}
	})
	bubble(t, "law_10_two_contents_of_an_identity_never", func(t *testing.T) {
		st := &markCounter{Store: memstore.New()}
		st.begin = func(marks []store.Mark) error {
			seen := map[string]bool{}
			for _, m := range marks {
				if seen[string(m.ID)] {
					t.Errorf("%s is marked twice in a batch", m.ID)
				}
				seen[string(m.ID)] = true
			}
			return nil
		}
		var messages []*semel.Message
		for i := range 20 {
			messages = append(messages, message(fmt.Sprint("m", i), `{"n":1}`), message(fmt.Sprint("m", i), `{"n":2}`), message(fmt.Sprint("m", i), `{"n":1}`))
		}
		call := func(context.Context, *semel.Message) (int64, error) {
			pass(time.Millisecond)
			return 1, nil
		}
		counts := callsThen(t, st, call, addAnswer, pureConfig(messages...))
		if counts.Applied != 20 || counts.Conflicts != 20 || counts.Duplicates != 20 {
			t.Errorf("%+v", counts)
		}
	})
}

func TestHowLongAnAnswerMayBeApplied(t *testing.T) {
	// slowly returns a function that takes the duration d to apply the answer of m1, and no time for the answers of
	// other messages.
	slowly := func(d time.Duration) func(context.Context, *memstore.Tx, int64, *semel.Message) error {
		return func(ctx context.Context, tx *memstore.Tx, n int64, m *semel.Message) error {
			if m.Identity.ID == "m1" {
				select {
				case <-time.After(d):
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			return addAnswer(ctx, tx, n, m)
		}
	}
	bubble(t, "law_3_as_long_as_a_handler_also_where_commits_have_less", func(t *testing.T) {
		store, a := memstore.New(), &asked{}
		c := pureConfig(numbered("m", 10)...)
		c.Timeout, c.CommitTimeout = time.Minute, 5*time.Second
		counts := callsThen(t, store, a.call, slowly(40*time.Second), c)
		if counts.Applied != 10 || effect(t, store, "m1") != "1" || a.calls["m1"] != 1 {
			t.Errorf("%+v, %v", counts, a.calls)
		}
	})
	bubble(t, "law_7_law_13_one_that_takes_longer_is_an_attempt_and_no_store_that_is_down", func(t *testing.T) {
		store, a := memstore.New(), &asked{}
		c := pureConfig(numbered("m", 10)...)
		c.Timeout, c.CommitTimeout, c.Retry.MaxAttempts = 10*time.Second, 5*time.Second, 3
		counts := callsThen(t, store, a.call, slowly(time.Hour), c)
		if counts.Applied != 9 || counts.Parked != 1 || a.calls["m1"] != 3 || a.calls["m2"] != 1 {
			t.Errorf("%+v, %v", counts, a.calls)
		}
	})
}

func TestAStoreThatOnlyAnswersLooks(t *testing.T) {
	bubble(t, "law_13_as_a_server_that_is_read_only_charges_nobody_however_long", func(t *testing.T) {
		st, a := &markCounter{Store: memstore.New()}, &asked{}
		began := time.Now()
		st.begin = func([]store.Mark) error {
			if time.Since(began) < 6*time.Hour {
				return errTest
			}
			return nil
		}
		var messages []*semel.Message
		runs(t, st.Store, add, config(newListSource(numbered("d", 60)...)))
		for i, m := range numbered("m", 20) { // duplicates end while m fails, and their end is no sign that calls work
			messages = append(append(messages, m), numbered("d", 60)[3*i:3*i+3]...)
		}
		c := pureConfig(messages...)
		c.Retry.MaxAttempts = 1
		counts := callsThen(t, downs{st}, a.call, addAnswer, c)
		if counts.Applied != 20 || counts.Duplicates != 60 || slices.Max(values(a.calls)) != 1 {
			t.Errorf("%+v, %v", counts, a.calls)
		}
	})
	bubble(t, "law_13_and_begins_charges_nobody_as_long_as_it_commits_nothing", func(t *testing.T) {
		st, a := &markCounter{Store: memstore.New()}, &asked{}
		began := time.Now()
		st.commit = func(b store.Batch[*memstore.Tx], ctx context.Context, e store.Ending) store.Result {
			if time.Since(began) < 6*time.Hour {
				b.Rollback(ctx)
				return store.Result{Outcome: store.NotCommitted, Class: store.ClassDown, Culprit: store.NoCulprit, Err: errTest}
			}
			return b.Commit(ctx, e)
		}
		c := pureConfig(numbered("m", 20)...)
		c.Retry.MaxAttempts = 1
		counts := callsThen(t, st, a.call, addAnswer, c)
		if counts.Applied != 20 || slices.Max(values(a.calls)) != 1 {
			t.Errorf("%+v, %v", counts, a.calls)
		}
	})
}

// downs is a store that gives all errors ClassDown.
type downs struct{ *markCounter }

func (downs) Classify(error) store.Class { return store.ClassDown }

// contended is a store that gives all errors ClassContended.
type contended struct{ *markCounter }

// observing is a function that implements semel.Observer.
type observing func(semel.Event)

func (o observing) Observe(e semel.Event) { o(e) }

func (contended) Classify(error) store.Class { return store.ClassContended }

func TestACopyThatIsMarkedElsewhereMeanwhile(t *testing.T) {
	bubble(t, "case_5_law_7_keeps_its_message_and_no_other", func(t *testing.T) {
		st, a := &markCounter{Store: memstore.New()}, &asked{}
		began := time.Now()
		st.begin = func(marks []store.Mark) error {
			if time.Since(began) < 10*time.Second && slices.ContainsFunc(marks, func(m store.Mark) bool { return string(m.ID) == "m1" }) {
				return errTest
			}
			return nil
		}
		var others atomic.Int64 // when the last other message was applied; transactions take no time
		serialised := false
		c := pureConfig(numbered("m", 20)...)
		c.Retry.MaxAttempts = 1
		c.Observers = []semel.Observer{observing(func(e semel.Event) { serialised = serialised || e.Kind == eventkind.Serial })}
		counts := callsThen(t, contended{st}, a.call, func(ctx context.Context, tx *memstore.Tx, n int64, m *semel.Message) error {
			if m.Identity.ID != "m1" {
				for was, now := others.Load(), int64(time.Since(began)); was < now && !others.CompareAndSwap(was, now); {
					was = others.Load()
				}
			}
			return addAnswer(ctx, tx, n, m)
		}, c)
		if counts.Applied != 20 || slices.Max(values(a.calls)) != 1 || others.Load() > int64(time.Second) || serialised {
			t.Errorf("%+v, %v, others after %v, one at a time: %v", counts, a.calls, time.Duration(others.Load()), serialised)
		}
	})
}

func TestAnAnswerToADuplicateEffect(t *testing.T) {
	bubble(t, "law_9_law_12_is_a_duplicate_and_marked", func(t *testing.T) {
		st, a := memstore.New(), &asked{}
		there := func(context.Context, *memstore.Tx, int64, *semel.Message) error { return semel.Duplicate(errTest) }
		for n := range 2 {
			counts := callsThen(t, st, a.call, there, pureConfig(numbered("m", 1)...))
			if counts.Duplicates != 1 || !outcome(t, st, "m0").Already(store.Applied) || a.calls["m0"] != 1 {
				t.Errorf("run %d: %+v, %v, %d calls", n, counts, outcome(t, st, "m0"), a.calls["m0"])
			}
		}
	})
}
