package consumer_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/store"
)

// pureConfig returns a configuration for calls that only read.
func pureConfig(messages ...*semel.Message) consumer.Config {
	c := config(newListSource(messages...))
	c.Workers, c.Lanes = 8, consumer.LanesNone
	return c
}

// markCounter is a store that records how many messages each transaction marks. The field begin, if set, is called
// before a transaction begins. The field commit, if set, is called instead of the commit.
type markCounter struct {
	*memstore.Store
	mutex  sync.Mutex
	marks  []int
	looks  atomic.Int32
	begin  func(marks []store.Mark) error
	commit func(b store.Batch[*memstore.Tx], ctx context.Context, e store.Ending) store.Result
}

type markedBatch struct {
	store.Batch[*memstore.Tx]
	s *markCounter
}

func (s *markCounter) LookUpMarkers(ctx context.Context, marks []store.Mark) ([]store.Verdict, error) {
	s.looks.Add(int32(len(marks)))
	return s.Store.LookUpMarkers(ctx, marks)
}

func (s *markCounter) Begin(ctx context.Context, o store.TxOptions, marks []store.Mark) (store.Batch[*memstore.Tx], []store.Verdict, error) {
	s.mutex.Lock()
	s.marks = append(s.marks, len(marks))
	s.mutex.Unlock()
	if s.begin != nil {
		if err := s.begin(marks); err != nil {
			return nil, nil, err
		}
	}
	pass(time.Millisecond)
	b, v, err := s.Store.Begin(ctx, o, marks)
	return markedBatch{b, s}, v, err
}

func (b markedBatch) Commit(ctx context.Context, e store.Ending) store.Result {
	if b.s.commit != nil {
		return b.s.commit(b.Batch, ctx, e)
	}
	return b.Batch.Commit(ctx, e)
}

func TestCallsThatChangeNothingNeedNoClaim(t *testing.T) {
	bubble(t, "case_16_law_9_the_call_is_made_while_nothing_is_open_and_a_duplicate_calls_nobody", func(t *testing.T) {
		store, a, open := &opening{Store: memstore.New()}, &asked{}, int32(0)
		call := func(ctx context.Context, m *semel.Message) (int64, error) {
			open = max(open, store.open.Load())
			return a.call(ctx, m)
		}
		for n := range 2 {
			c := pureConfig(numbered("m", 30)...)
			c.Workers = 1
			counts := callsThen(t, store, call, addAnswer, c)
			if want := int64(30 * (1 - n)); counts.Applied != want || counts.Duplicates != 30-want || open != 0 {
				t.Errorf("%+v; %d were open", counts, open)
			}
		}
		for i := range 30 {
			if id := fmt.Sprint("m", i); effect(t, store.Store, id) != "1" || a.calls[id] != 1 {
				t.Errorf("%s: effect %q, %d calls", id, effect(t, store.Store, id), a.calls[id])
			}
		}
	})
	bubble(t, "law_1_answers_share_transactions_with_their_marks", func(t *testing.T) {
		store := &markCounter{Store: memstore.New()}
		call := func(context.Context, *semel.Message) (int64, error) {
			pass(time.Millisecond)
			return 1, nil
		}
		if counts := callsThen(t, store, call, addAnswer, pureConfig(numbered("m", 100)...)); counts.Applied != 100 || slices.Max(store.marks) < 4 || len(store.marks) > 60 {
			t.Errorf("%+v, %v", counts, store.marks)
		}
	})
	bubble(t, "law_8_messages_of_a_key_are_called_for_one_after_the_other_and_keys_are_not", func(t *testing.T) {
		var messages []*semel.Message
		for i := range 20 {
			m := numbered("m", 20)[i]
			m.Key = []byte{byte(i % 2)}
			messages = append(messages, m)
		}
		var mutex sync.Mutex
		order, at, most := map[byte][]string{}, 0, 0
		c := pureConfig(messages...)
		c.Lanes = consumer.LanesKey
		callsThen(t, memstore.New(), func(_ context.Context, m *semel.Message) (int64, error) {
			mutex.Lock()
			order[m.Key[0]] = append(order[m.Key[0]], m.Identity.ID)
			at++
			most = max(most, at)
			mutex.Unlock()
			pass(time.Second)
			mutex.Lock()
			at--
			mutex.Unlock()
			return 1, nil
		}, addAnswer, c)
		if want := []string{"m0", "m2", "m4", "m6", "m8", "m10", "m12", "m14", "m16", "m18"}; !slices.Equal(order[0], want) || most != 2 {
			t.Errorf("%v, %d at once", order, most)
		}
	})
}

func TestAnAnswerThatFailsHarmsNoOther(t *testing.T) {
	for name, fails := range map[string]func() error{
		"an_error":      func() error { return errTest },
		"a_panic":       func() error { panic("test") },
		"its_goroutine": func() error { runtime.Goexit(); return nil },
	} {
		bubble(t, "law_3_law_7_"+name, func(t *testing.T) {
			store, a, failed := memstore.New(), &asked{}, 0
			c := pureConfig(numbered("m", 30)...)
			c.Retry.MaxAttempts = 3
			var mutex sync.Mutex
			counts := callsThen(t, store, a.call, func(ctx context.Context, tx *memstore.Tx, n int64, m *semel.Message) error {
				mutex.Lock()
				defer mutex.Unlock()
				if err := addAnswer(ctx, tx, n, m); err != nil {
					return err
				}
				if m.Identity.ID == "m7" {
					failed++
					return fails()
				}
				return nil
			}, c)
			if counts.Applied != 29 || counts.Parked != 1 || effect(t, store, "m7") != "" || effect(t, store, "m8") != "1" || a.calls["m7"] != 3 || a.calls["m8"] != 1 {
				t.Errorf("%+v, %q, %q, %v", counts, effect(t, store, "m7"), effect(t, store, "m8"), a.calls)
			}
		})
	}
}

// The lookup before the call finds no marker, and another process writes the marker during the call.
func TestAMessageThatIsMarkedWhileItIsCalledFor(t *testing.T) {
	bubble(t, "law_9_trap_7_by_another_process_is_a_duplicate", func(t *testing.T) {
		st, a := memstore.New(), &asked{}
		c := pureConfig(numbered("m", 3)...)
		counts := callsThen(t, st, func(ctx context.Context, m *semel.Message) (int64, error) {
			if m.Identity.ID == "m1" {
				runs(t, st, add, config(newListSource(numbered("m", 2)[1])))
			}
			return a.call(ctx, m)
		}, addAnswer, c)
		if counts.Applied != 2 || counts.Duplicates != 1 || effect(t, st, "m1") != "1" || a.calls["m1"] != 1 {
			t.Errorf("%+v, %q, %v", counts, effect(t, st, "m1"), a.calls)
		}
	})
	bubble(t, "law_10_with_another_content_is_a_conflict", func(t *testing.T) {
		st, a := memstore.New(), &asked{}
		other := message("m1", `{"n":"other"}`)
		counts := callsThen(t, st, func(ctx context.Context, m *semel.Message) (int64, error) {
			if m.Identity.ID == "m1" {
				runs(t, st, add, config(newListSource(other)))
			}
			return a.call(ctx, m)
		}, addAnswer, pureConfig(numbered("m", 3)...))
		if counts.Applied != 2 || counts.Conflicts != 1 || effect(t, st, "m1") != "1" {
			t.Errorf("%+v, %q", counts, effect(t, st, "m1"))
		}
	})
	bubble(t, "case_3_by_a_commit_whose_answer_was_lost_counts_as_applied", func(t *testing.T) {
		st, a := &markCounter{Store: memstore.New()}, &asked{}
		lost := atomic.Int32{}
		st.commit = func(b store.Batch[*memstore.Tx], ctx context.Context, e store.Ending) store.Result {
			r := b.Commit(ctx, e)
			if lost.Add(1) <= 2 {
				return store.Result{Outcome: store.CommitUnknown, Class: store.ClassDown, Culprit: store.NoCulprit, Err: errTest}
			}
			return r
		}
		counts := callsThen(t, st, a.call, addAnswer, pureConfig(numbered("m", 20)...))
		if counts.Applied != 20 || counts.Duplicates != 0 {
			t.Errorf("%+v", counts)
		}
		for id, n := range a.calls {
			if effect(t, st.Store, id) != "1" || n != 1 {
				t.Errorf("%s: effect %q, %d calls", id, effect(t, st.Store, id), n)
			}
		}
	})
	bubble(t, "case_3_by_nobody_since_that_commit_came_to_nothing_runs_again_with_its_answer", func(t *testing.T) {
		st, a := &markCounter{Store: memstore.New()}, &asked{}
		lost := atomic.Int32{}
		st.commit = func(b store.Batch[*memstore.Tx], ctx context.Context, e store.Ending) store.Result {
			if lost.Add(1) <= 2 {
				b.Rollback(ctx)
				return store.Result{Outcome: store.CommitUnknown, Class: store.ClassDown, Culprit: store.NoCulprit, Err: errTest}
			}
			return b.Commit(ctx, e)
		}
		counts := callsThen(t, st, a.call, addAnswer, pureConfig(numbered("m", 20)...))
		if counts.Applied != 20 || len(a.calls) != 20 || slices.Max(values(a.calls)) != 1 {
			t.Errorf("%+v, %v", counts, a.calls)
		}
	})
	bubble(t, "law_13_a_store_that_is_down_is_nobodys_attempt_and_nobody_is_called_again", func(t *testing.T) {
		a, downs := &asked{}, atomic.Int32{}
		st := &markCounter{Store: memstore.New(memstore.Fail(func(op string) error {
			if op == "begin" && downs.Add(1) <= 5 {
				return errTest
			}
			return nil
		}))}
		c := pureConfig(numbered("m", 5)...)
		c.Retry.MaxAttempts = 1
		counts := callsThen(t, st, a.call, addAnswer, c)
		if counts.Applied != 5 || slices.Max(values(a.calls)) != 1 || downs.Load() <= 5 {
			t.Errorf("%+v, %v, %d", counts, a.calls, downs.Load())
		}
	})
}

func values(c calls) (all []int) {
	for _, n := range c {
		all = append(all, n)
	}
	return all
}

func TestMessagesThatCannotBeCalledForAtOnceAreClaimedLater(t *testing.T) {
	bubble(t, "case_6_a_wait_longer_than_hold_ends_in_the_inbox_and_is_called_for_from_there", func(t *testing.T) {
		store, a, first := memstore.New(), &asked{}, atomic.Bool{}
		call := func(ctx context.Context, m *semel.Message) (int64, error) {
			n, _ := a.call(ctx, m)
			if m.Identity.ID == "m1" && first.CompareAndSwap(false, true) {
				return 0, semel.RetryAfter(errTest, 5*time.Minute)
			}
			return n, nil
		}
		counts := callsThen(t, store, call, addAnswer, pureConfig(numbered("m", 3)...))
		if counts.Applied != 2 || counts.Waiting != 1 || effect(t, store, "m1") != "" {
			t.Errorf("%+v, %q", counts, effect(t, store, "m1"))
		}
		pass(48 * time.Hour) // longer than the window of a call that changes something
		later, err := consumer.NewCalling(store, call, addAnswer, pureConfig())
		if err == nil {
			err = later.Work(t.Context())
		}
		if counts := later.Counts(); err != nil || counts.Inbox.Applied != 1 || effect(t, store, "m1") != "1" || a.calls["m1"] != 2 {
			t.Errorf("%v, %+v, %q", err, counts, effect(t, store, "m1"))
		}
	})
	bubble(t, "case_7_what_comes_behind_one_that_is_parked_waits_behind_it", func(t *testing.T) {
		store, a := memstore.New(), &asked{}
		var messages []*semel.Message
		for _, m := range numbered("m", 6) {
			m.Key = []byte("k")
			messages = append(messages, m)
		}
		c := pureConfig(messages...)
		c.Lanes, c.OnParked = consumer.LanesKey, consumer.OnParkedBlock
		counts := callsThen(t, store, func(ctx context.Context, m *semel.Message) (int64, error) {
			if m.Identity.ID == "m2" {
				return 0, semel.Permanent(errTest)
			}
			return a.call(ctx, m)
		}, addAnswer, c)
		if counts.Applied != 2 || counts.Parked != 1 || counts.Waiting != 3 {
			t.Errorf("%+v, %v", counts, a.calls)
		}
	})
}

func TestConfigurationsThatExcludeCallsWithoutAClaim(t *testing.T) {
	c := pureConfig()
	for name, one := range map[string]struct {
		store  store.TxStore[*memstore.Tx]
		change func(*consumer.Config)
	}{
		"a_store_without_looks": {onlyTransactions{memstore.New()}, func(*consumer.Config) {}},
		"trap_114_a_former_identity": {memstore.New(), func(c *consumer.Config) {
			c.PreviousIdentity = &consumer.PreviousIdentity{Identity: identity.CloudEvents()}
		}},
		"B5_versions":                     {memstore.New(), func(c *consumer.Config) { c.Version = &consumer.VersionPolicy{} }},
		"a_natural_effect_needs_no_claim": {memstore.New(), func(c *consumer.Config) { c.Strategy, c.NaturalReason = consumer.StrategyNatural, "test" }},
	} {
		t.Run(name, func(t *testing.T) {
			c := c
			one.change(&c)
			if _, err := consumer.NewCalling(one.store, (&asked{}).call, addAnswer, c); err == nil {
				t.Error("it is taken")
			}
		})
	}
}

// onlyTransactions is a store without the optional features of memstore.
type onlyTransactions struct{ store.TxStore[*memstore.Tx] }

// TestRandomCallsWithoutClaims runs two processes over the same messages, while calls, applying, commits and the
// store fail.
func TestRandomCallsWithoutClaims(t *testing.T) {
	bubble(t, "law_1_law_12_each_takes_effect_once", func(t *testing.T) {
		marks, shared := 0, 0
		for seed := range uint64(20) {
			random := rand.New(rand.NewPCG(seed, 0))
			var mutex sync.Mutex
			draw := func(n int) int {
				mutex.Lock()
				defer mutex.Unlock()
				return random.IntN(n)
			}
			chance := func(n int) bool { return draw(n) == 0 }
			st := &markCounter{Store: memstore.New()}
			st.begin = func(marks []store.Mark) error { return nil }
			st.commit = func(b store.Batch[*memstore.Tx], ctx context.Context, e store.Ending) store.Result {
				unknown := store.Result{Outcome: store.CommitUnknown, Class: store.ClassDown, Culprit: store.NoCulprit, Err: errTest}
				switch {
				case chance(10):
					b.Rollback(ctx)
					return unknown
				case chance(10):
					b.Commit(ctx, e)
					return unknown
				case chance(10):
					b.Rollback(ctx)
					return store.Result{Outcome: store.NotCommitted, Class: store.ClassContended, Culprit: store.NoCulprit, Err: errTest}
				}
				return b.Commit(ctx, e)
			}
			var group sync.WaitGroup
			for range 2 {
				group.Go(func() {
					c := pureConfig(append(numbered("m", 25), numbered("m", 25)...)...)
					c.Retry.MaxAttempts = 1000
					callsThen(t, st, func(context.Context, *semel.Message) (int64, error) {
						pass(time.Duration(draw(5)) * time.Millisecond)
						if chance(8) {
							return 0, errTest
						}
						return 1, nil
					}, func(ctx context.Context, tx *memstore.Tx, n int64, m *semel.Message) error {
						if err := addAnswer(ctx, tx, n, m); err != nil || !chance(12) {
							return err
						}
						return errTest
					}, c)
				})
			}
			group.Wait()
			for i := range 25 {
				if id := fmt.Sprint("m", i); effect(t, st.Store, id) != "1" || !outcome(t, st.Store, id).Already(store.Applied) {
					t.Fatalf("seed %d: %s has the effect %q", seed, id, effect(t, st.Store, id))
				}
			}
			for _, n := range st.marks {
				marks++
				if n > 1 {
					shared++
				}
			}
		}
		if shared*10 < marks {
			t.Errorf("of %d transactions %d were shared", marks, shared)
		}
	})
}
