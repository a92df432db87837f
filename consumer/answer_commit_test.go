package consumer_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/store"
)

// sharing is a store whose commits take a while. sharing rejects a transaction that contains message m3, and
// records how many messages each transaction had.
type sharing struct {
	*memstore.Store
	class store.Class

	mutex sync.Mutex
	asked []int
}

func (s *sharing) CommitCombined(ctx context.Context, o store.TxOptions, all []admin.QueuedBatch[*memstore.Tx]) store.Result {
	s.mutex.Lock()
	s.asked = append(s.asked, len(all))
	s.mutex.Unlock()
	pass(time.Second)
	for i, one := range all {
		tx := one.Batch.Tx(0)
		if refused, err := tx.Get("refused"); err != nil || refused != nil {
			return store.Result{Outcome: store.NotCommitted, Class: s.class, Culprit: i, Err: errTest}
		}
	}
	return s.Store.CommitCombined(ctx, o, all)
}

func TestAnswersShareTransactions(t *testing.T) {
	workers := func(t *testing.T, n int) (st *sharing, a *asked, counts semel.Counts) {
		st, a = &sharing{Store: memstore.New(), class: store.ClassPermanent}, &asked{}
		fillInbox(t, st.Store, n)
		c := callingConfig()
		c.Workers = 8
		counts = callsThen(t, st, a.call, func(ctx context.Context, tx *memstore.Tx, n int64, m *semel.Message) error {
			if m.Identity.ID == "m3" {
				if err := tx.Set("refused", []byte("1")); err != nil {
					return err
				}
			}
			return addAnswer(ctx, tx, n, m)
		}, c)
		return st, a, counts
	}
	bubble(t, "K10_what_many_workers_have_to_write_is_written_in_few_transactions", func(t *testing.T) {
		st, a, counts := workers(t, 3)
		if counts.Inbox.Applied != 3 || slices.Max(st.asked) < 2 || len(a.calls) != 3 {
			t.Errorf("%+v, %v, %v", counts.Inbox, st.asked, a.calls)
		}
	})
	bubble(t, "law_7_an_answer_that_cannot_be_applied_keeps_no_other_from_it_and_has_nobody_called_again", func(t *testing.T) {
		st, a, counts := workers(t, 20)
		if counts.Inbox.Applied != 19 || counts.Inbox.Parked != 1 || slices.Max(st.asked) < 2 {
			t.Errorf("%+v, %v", counts.Inbox, st.asked)
		}
		for id, calls := range a.calls {
			want := "1"
			if id == "m3" {
				want = ""
			}
			if calls != 1 || effect(t, st.Store, id) != want {
				t.Errorf("%s: called %d times, effect %q", id, calls, effect(t, st.Store, id))
			}
		}
	})
	bubble(t, "law_11_a_lock_that_somebody_keeps_of_one_has_the_others_not_called_one_at_a_time", func(t *testing.T) {
		st, began, last := &sharing{Store: memstore.New(), class: store.ClassContended}, time.Now(), time.Duration(0)
		fillInbox(t, st.Store, 80)
		c := callingConfig()
		c.Workers, c.Timeout, c.Retry.MaxAttempts = 8, time.Minute, 1000
		counts := callsThen(t, st, func(context.Context, *semel.Message) (int64, error) {
			pass(10 * time.Second)
			return 1, nil
		}, func(ctx context.Context, tx *memstore.Tx, n int64, m *semel.Message) error {
			if m.Identity.ID != "m3" {
				st.mutex.Lock()
				last = time.Since(began)
				st.mutex.Unlock()
			} else if time.Since(began) < 5*time.Minute { // the row of m0 is locked until then
				if err := tx.Set("refused", []byte("1")); err != nil {
					return err
				}
			}
			return addAnswer(ctx, tx, n, m)
		}, c)
		if counts.Inbox.Applied != 80 || last > 4*time.Minute {
			t.Errorf("the others took %v, %+v", last, counts.Inbox)
		}
	})
}

// keptStart is a store in which another transaction has locked the row of message m0 for a minute.
type keptStart struct{ *memstore.Store }

func (s keptStart) StartCalls(ctx context.Context, claims []store.Claim, lease time.Duration) ([]store.CallStarted, error) {
	for _, c := range claims {
		if rows, err := s.Rows(ctx, store.RowFilter{Numbers: []int64{c.Number}}); err == nil && len(rows) == 1 && rows[0].Key.ID == "m0" {
			pass(time.Minute)
		}
	}
	return s.Store.StartCalls(ctx, claims, lease)
}

func TestAStartThatWaitsForALock(t *testing.T) {
	bubble(t, "law_7_keeps_none_from_its_call_that_began_after_it", func(t *testing.T) {
		store, a := keptStart{memstore.New()}, &asked{}
		fillInbox(t, store.Store, 30)
		c, began, took := callingConfig(), time.Now(), map[string]time.Duration{}
		c.Workers = 8
		callsThen(t, store, func(ctx context.Context, m *semel.Message) (int64, error) {
			n, err := a.call(ctx, m)
			a.mutex.Lock()
			took[m.Identity.ID] = time.Since(began)
			a.mutex.Unlock()
			return n, err
		}, addAnswer, c)
		late := 0
		for _, d := range took {
			if d > 30*time.Second {
				late++
			}
		}
		if len(took) < 29 || late > 2 { // two messages may be late: m0, and one message of the same call
			t.Errorf("%d of %d calls waited for it", late, len(took))
		}
	})
}
