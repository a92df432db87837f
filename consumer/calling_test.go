package consumer_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/faults"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/store"
)

func callingConfig() consumer.Config {
	c := withoutSource(config(nil))
	c.AckOnReceipt, c.IdleExit, c.Workers = true, time.Minute, 1
	return c
}

// asked responds to each call with 1 and counts the calls.
type asked struct {
	mutex sync.Mutex
	calls calls
}

func (a *asked) call(_ context.Context, m *semel.Message) (int64, error) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if a.calls == nil {
		a.calls = calls{}
	}
	a.calls[m.Identity.ID]++
	return 1, nil
}

func addAnswer(_ context.Context, tx *memstore.Tx, n int64, m *semel.Message) error {
	return tx.Add("effect "+m.Identity.ID, n)
}

// callsThen runs a consumer of NewCalling to its end.
func callsThen[Answer any](t *testing.T, st store.TxStore[*memstore.Tx], call func(context.Context, *semel.Message) (Answer, error), apply func(context.Context, *memstore.Tx, Answer, *semel.Message) error, c consumer.Config) semel.Counts {
	t.Helper()
	running, err := consumer.NewCalling(st, call, apply, c)
	if err == nil {
		err = running.Run(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	addsUp(t, running.Counts())
	return running.Counts()
}

// claimsOnce is a store that lets a process claim each row once, as if another process claimed the released
// rows.
type claimsOnce struct {
	*memstore.Store
	over atomic.Bool
}

func (s *claimsOnce) Claim(ctx context.Context, o store.ClaimOptions) ([]store.Claimed, error) {
	if s.over.Load() {
		return nil, nil
	}
	all, err := s.Store.Claim(ctx, o)
	s.over.Store(len(all) > 0)
	return all, err
}

// refusing is a store that rejects a number of commits.
type refusing struct {
	*memstore.Store
	left  atomic.Int32
	class store.Class
}

type refusedBatch struct {
	store.Batch[*memstore.Tx]
	s *refusing
}

func (s *refusing) Begin(ctx context.Context, o store.TxOptions, marks []store.Mark) (store.Batch[*memstore.Tx], []store.Verdict, error) {
	b, v, err := s.Store.Begin(ctx, o, marks)
	return refusedBatch{b, s}, v, err
}

func (s *refusing) CommitCombined(ctx context.Context, o store.TxOptions, all []admin.QueuedBatch[*memstore.Tx]) store.Result {
	if s.left.Add(-1) < 0 {
		return s.Store.CommitCombined(ctx, o, all)
	}
	return store.Result{Outcome: store.NotCommitted, Class: s.class, Culprit: store.NoCulprit, Err: errTest}
}

func (b refusedBatch) Commit(ctx context.Context, e store.Ending) store.Result {
	if len(e.Claims) == 0 || b.s.left.Add(-1) < 0 {
		return b.Batch.Commit(ctx, e)
	}
	b.Rollback(ctx)
	return store.Result{Outcome: store.NotCommitted, Class: b.s.class, Culprit: store.NoCulprit, Err: errTest}
}

func TestHandlersThatCallAndThenWrite(t *testing.T) {
	bubble(t, "case_16_law_2_the_call_is_made_while_no_transaction_is_open_and_its_answer_applied_in_one", func(t *testing.T) {
		st := &opening{Store: memstore.New()}
		c := callingConfig()
		c.Source, c.IdleExit = newListSource(numbered("m", 30)...), 0
		open := int32(0)
		counts := callsThen(t, st, func(context.Context, *semel.Message) (int64, error) {
			open = max(open, st.open.Load())
			pass(time.Second)
			return 3, nil
		}, addAnswer, c)
		if counts.Received != 30 || counts.Inbox.Applied != 30 || open != 0 {
			t.Errorf("%+v; %d were open", counts, open)
		}
		for _, id := range []string{"m0", "m29"} {
			if effect(t, st.Store, id) != "3" || !outcome(t, st.Store, id).Already(store.Applied) {
				t.Errorf("%s: %q", id, effect(t, st.Store, id))
			}
		}
	})
	bubble(t, "law_3_what_apply_wrote_before_it_failed_is_gone_and_the_call_is_made_again", func(t *testing.T) {
		st, a, failed := memstore.New(), &asked{}, false
		fillInbox(t, st, 2)
		counts := callsThen(t, st, a.call, func(ctx context.Context, tx *memstore.Tx, n int64, m *semel.Message) error {
			err := addAnswer(ctx, tx, n, m)
			switch {
			case m.Identity.ID == "m0" && !failed:
				failed, err = true, errTest
			case m.Identity.ID == "m1":
				err = semel.Permanent(errTest)
			}
			return err
		}, callingConfig())
		if counts.Inbox.Applied != 1 || counts.Inbox.Parked != 1 || effect(t, st, "m0") != "1" || effect(t, st, "m1") != "" || a.calls["m0"] != 2 {
			t.Errorf("%+v, %v, %q, %q", counts.Inbox, a.calls, effect(t, st, "m0"), effect(t, st, "m1"))
		}
	})
	for _, class := range []store.Class{store.ClassContended, store.ClassDown} {
		bubble(t, "K10_after_"+class.String()+"_the_same_answer_is_applied_and_nobody_called_again", func(t *testing.T) {
			st, a := &refusing{Store: memstore.New(), class: class}, &asked{}
			st.left.Store(2)
			fillInbox(t, st.Store, 1)
			c := callingConfig()
			c.Provider.Window = consumer.WindowNever // with an answer, the outcome of the call is known
			counts := callsThen(t, st, a.call, addAnswer, c)
			if counts.Inbox.Applied != 1 || a.calls["m0"] != 1 || effect(t, st.Store, "m0") != "1" || st.left.Load() >= 0 {
				t.Errorf("%+v, %v", counts.Inbox, a.calls)
			}
		})
	}
	bubble(t, "law_5_an_answer_that_comes_after_its_claim_is_lost_changes_nothing_and_is_counted", func(t *testing.T) {
		st := memstore.New()
		fillInbox(t, st, 1)
		counts := callsThen(t, &claimsOnce{Store: st}, func(ctx context.Context, _ *semel.Message) (int64, error) {
			rows, err := st.Rows(ctx, store.RowFilter{})
			if err == nil {
				err = errors.Join(st.Release(ctx, store.Act{Verb: "release", Who: "me", Why: "a test", Row: rows[0].Number}, rows[0].Seen())...)
			}
			second, unfit := consumer.NewCalling(st, (&asked{}).call, addAnswer, callingConfig())
			if err := errors.Join(err, unfit, second.Work(ctx)); err != nil || second.Counts().Inbox.Applied != 1 {
				t.Errorf("%v: %+v", err, second.Counts())
			}
			return 100, nil
		}, addAnswer, callingConfig())
		if counts.Inbox.Applied != 0 || counts.Inbox.Lost != 1 || effect(t, st, "m0") != "1" {
			t.Errorf("%+v, effect %q", counts.Inbox, effect(t, st, "m0"))
		}
	})
	t.Run("K1_what_does_not_fit_is_refused", func(t *testing.T) {
		a := &asked{}
		if _, err := consumer.NewCalling(memstore.New(), a.call, nil, callingConfig()); err == nil {
			t.Error("NewCalling accepted a nil apply function")
		}
		if _, err := consumer.NewCalling(plain(memstore.New()), a.call, addAnswer, callingConfig()); !errors.Is(err, semel.ErrUnsupported) {
			t.Error(err)
		}
	})
}

// died runs a consumer of NewCalling until its process dies at the n-th time that the process passes point.
// died reports whether the process died.
func died(t *testing.T, store *memstore.Store, dead *atomic.Bool, a *asked, point faults.Point, n int) bool {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	passed := atomic.Int64{}
	c := callingConfig()
	c.Workers, c.Drain = 2, time.Second
	running, err := consumer.NewCalling(store, a.call, addAnswer, c, faults.Plan{At: func(p faults.Point, _ int) {
		if p == point && passed.Add(1) >= int64(n) {
			dead.Store(true)
			cancel()
		}
	}})
	if err == nil {
		err = running.Run(ctx)
	}
	if err != nil && !dead.Load() {
		t.Fatal(err)
	}
	defer dead.Store(false)
	return dead.Load()
}

func TestAProcessThatDiesBetweenCallAndCommit(t *testing.T) {
	bubble(t, "law_1_case_16_wherever_it_dies_each_message_takes_effect_once", func(t *testing.T) {
		deaths := 0
		for _, point := range []faults.Point{faults.AfterMark, faults.AfterCall, faults.AfterEffect, faults.BeforeCommit, faults.AfterCommit} {
			for n := 1; n <= 4; n++ {
				var dead atomic.Bool
				st, a := memstore.New(memstore.Fail(func(string) error {
					if dead.Load() {
						return errors.New("the process is dead")
					}
					return nil
				})), &asked{}
				fillInbox(t, st, 6)
				if died(t, st, &dead, a, point, n) {
					deaths++
				}
				for _, id := range []string{"m0", "m1", "m2", "m3", "m4", "m5"} {
					if marked, done := outcome(t, st, id).Already(store.Applied), effect(t, st, id) == "1"; marked != done {
						t.Errorf("%s %d: marker of %s %v, effect %v", point, n, id, marked, done)
					}
				}
				callsThen(t, st, a.call, addAnswer, callingConfig())
				for id, called := range a.calls {
					if effect(t, st, id) != "1" || called > 2 {
						t.Errorf("%s %d: %s has effect %q after %d calls", point, n, id, effect(t, st, id), called)
					}
				}
			}
		}
		if deaths < 18 {
			t.Errorf("the process died only %d times", deaths)
		}
	})
}

func TestCallsWithUnappliedAnswers(t *testing.T) {
	for name, fails := range map[string]struct{ call, apply error }{
		"its_answer_was_lost":                {errTest, nil},
		"its_answer_was_not_applied":         {nil, errTest},
		"its_answer_was_not_applied_for_now": {nil, semel.Retry(errTest)}, // a retry error of apply says nothing about the call
	} {
		bubble(t, "E3_after_the_window_nobody_calls_again_when_"+name, func(t *testing.T) {
			store, calls, c := memstore.New(), 0, callingConfig()
			fillInbox(t, store, 1)
			c.Retry = consumer.RetryPolicy{MaxAttempts: 3, InitialDelay: time.Minute, MaxDelay: time.Hour}
			c.Timeout, c.Provider.Window = time.Second, time.Second+time.Millisecond
			counts := callsThen(t, store, func(context.Context, *semel.Message) (int64, error) {
				calls++
				return 1, fails.call
			}, func(context.Context, *memstore.Tx, int64, *semel.Message) error { return fails.apply }, c)
			if r := row(t, store, "m0"); calls != 1 || counts.Inbox.Parked != 1 || r.Reason != semel.ReasonOutcomeUnknown {
				t.Errorf("%d calls, %+v, %+v", calls, counts.Inbox, r)
			}
		})
	}
	bubble(t, "E3_trap_T76_a_refusal_after_the_timeout_says_nothing_of_the_call", func(t *testing.T) {
		store, calls, c := memstore.New(), 0, callingConfig()
		fillInbox(t, store, 1)
		c.Timeout = 30 * time.Second
		c.Provider.Window = c.Timeout + time.Second
		counts := callsThen(t, store, func(context.Context, *semel.Message) (int64, error) {
			calls++
			pass(30500 * time.Millisecond) // after the timeout, within the lease
			return 1, semel.Retry(errTest)
		}, addAnswer, c)
		if r := row(t, store, "m0"); calls != 1 || counts.Inbox.Parked != 1 || r.Reason != semel.ReasonOutcomeUnknown {
			t.Errorf("%d calls, %+v, %+v", calls, counts.Inbox, r)
		}
	})
	t.Run("E3_what_it_answered_cannot_be_asked", func(t *testing.T) {
		c := callingConfig()
		c.Provider.Lookup = func(context.Context, *semel.Message) (consumer.LookupResult, error) { return consumer.Happened, nil }
		_, err := consumer.NewCalling(memstore.New(), (&asked{}).call, addAnswer, c)
		if err == nil || !strings.Contains(err.Error(), "Provider.Lookup") {
			t.Errorf("it is taken: %v", err)
		}
	})
}
