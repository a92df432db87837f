package consumer_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/store"
)

// opening is a store that counts its open transactions and can reject transactions.
type opening struct {
	*memstore.Store
	never bool // the store rejects every transaction
	open  atomic.Int32
	begun atomic.Int32
	lose  atomic.Bool // loses the response to the next End
}

type counted struct {
	store.Batch[*memstore.Tx]
	s *opening
}

func (b counted) Commit(ctx context.Context, e store.Ending) store.Result {
	defer b.s.open.Add(-1)
	return b.Batch.Commit(ctx, e)
}

func (b counted) Rollback(ctx context.Context) {
	defer b.s.open.Add(-1)
	b.Batch.Rollback(ctx)
}

func (s *opening) Begin(ctx context.Context, o store.TxOptions, marks []store.Mark) (store.Batch[*memstore.Tx], []store.Verdict, error) {
	s.begun.Add(1)
	if s.never {
		return nil, nil, errors.New("this store refuses transactions")
	}
	b, v, err := s.Store.Begin(ctx, o, marks)
	if err == nil {
		s.open.Add(1)
	}
	return counted{b, s}, v, err
}

func (s *opening) End(ctx context.Context, all []store.ClaimEnding) ([]int, error) {
	lost, err := s.Store.End(ctx, all)
	if s.lose.CompareAndSwap(true, false) {
		return nil, io.ErrUnexpectedEOF
	}
	return lost, err
}

// Claim returns no rows while a transaction is open, as in a store with a single writer.
func (s *opening) Claim(ctx context.Context, o store.ClaimOptions) ([]store.Claimed, error) {
	if s.open.Load() > 0 {
		return nil, nil
	}
	return s.Store.Claim(ctx, o)
}

// Extend returns no claims while a transaction is open, as in a store with a single writer.
func (s *opening) Extend(ctx context.Context, claims []store.Claim, lease time.Duration) ([]int, error) {
	if s.open.Load() > 0 {
		return nil, nil
	}
	return s.Store.Extend(ctx, claims, lease)
}

// calls contains the number of calls that a handler made outside of transactions, by identity.
type calls map[string]int

func TestHandlersThatCallOut(t *testing.T) {
	leasedConfig := func() consumer.Config {
		c := withoutSource(config(nil))
		c.AckOnReceipt, c.IdleExit, c.Workers = true, time.Minute, 1
		return c
	}
	bubble(t, "law_4_D3_without_any_transaction_each_message_comes_to_its_end", func(t *testing.T) {
		st, made := &opening{Store: memstore.New(), never: true}, calls{}
		fillInbox(t, st.Store, 20)
		counts := runsLeased(t, st, func(_ context.Context, _ consumer.Call, m *semel.Message) error {
			made[m.Identity.ID]++
			switch {
			case m.Identity.ID == "m3":
				return semel.Permanent(errTest)
			case m.Identity.ID == "m5" && made["m5"] < 3:
				return semel.Retry(io.EOF)
			case m.Identity.ID == "m7" && made["m7"] < 2:
				panic("no")
			}
			return nil
		}, leasedConfig())
		if counts.Inbox.Applied != 19 || counts.Inbox.Parked != 1 || counts.Inbox.Lost != 0 || st.begun.Load() != 0 {
			t.Errorf("%+v; %d transactions", counts, st.begun.Load())
		}
		for id, n := range made {
			if want := map[string]int{"m5": 3, "m7": 2}[id]; n != max(want, 1) {
				t.Errorf("%s was called for %d times", id, n)
			}
		}
		if v := outcome(t, st.Store, "m5"); !v.Already(store.Applied) {
			t.Errorf("m5 is %v", v)
		}
	})
	bubble(t, "law_2_no_transaction_is_open_while_a_handler_runs", func(t *testing.T) {
		st := &opening{Store: memstore.New()}
		c := leasedConfig()
		c.Source, c.IdleExit = newListSource(numbered("m", 50)...), 0
		open := int32(0)
		counts := runsLeased(t, st, func(context.Context, consumer.Call, *semel.Message) error {
			open = max(open, st.open.Load())
			pass(time.Second)
			return nil
		}, c)
		if counts.Received != 50 || counts.Inbox.Applied != 50 || open != 0 || st.begun.Load() == 0 {
			t.Errorf("%+v; %d were open", counts, open)
		}
	})
	bubble(t, "T4_law_5_a_slow_call_keeps_its_lease_and_one_that_does_not_end_loses_it", func(t *testing.T) {
		st, made := &opening{Store: memstore.New(), never: true}, calls{}
		fillInbox(t, st.Store, 2)
		c := leasedConfig()
		c.Inbox.Lease, c.Timeout = 3*time.Second, 10*time.Second
		done := make(chan semel.Counts)
		go func() {
			done <- runsLeased(t, st, func(ctx context.Context, _ consumer.Call, m *semel.Message) error {
				made[m.Identity.ID]++
				if m.Identity.ID == "m0" {
					pass(9 * time.Second) // this takes as long as three leases
					return nil
				}
				pass(time.Minute) // the handler ignores its context and runs longer than its timeout
				return nil
			}, c)
		}()
		pass(25 * time.Second)
		other, again := leasedConfig(), calls{}
		other.Inbox.Lease = time.Minute
		second := runsLeased(t, st, func(_ context.Context, _ consumer.Call, m *semel.Message) error {
			again[m.Identity.ID]++
			return nil
		}, other)
		first := <-done
		if made["m0"] != 1 || made["m1"] != 1 || again["m1"] != 1 || first.Inbox.Applied != 1 || first.Inbox.Lost != 1 || second.Inbox.Applied != 1 || second.Inbox.Reclaimed != 1 {
			t.Errorf("%v, %v\n%+v\n%+v", made, again, first.Inbox, second.Inbox)
		}
	})
	bubble(t, "law_5_a_call_whose_row_a_person_took_meanwhile_ends_nothing", func(t *testing.T) {
		st := &opening{Store: memstore.New(), never: true}
		fillInbox(t, st.Store, 1)
		counts := runsLeased(t, st, func(ctx context.Context, _ consumer.Call, _ *semel.Message) error {
			rows, err := st.Rows(ctx, store.RowFilter{})
			if err == nil {
				err = errors.Join(st.Discard(ctx, store.Act{Verb: "discard", Who: "me", Why: "a test", Row: rows[0].Number}, rows[0].Seen())...)
			}
			if err != nil {
				t.Error(err)
			}
			return nil
		}, leasedConfig())
		rows, err := st.Rows(t.Context(), store.RowFilter{})
		if err != nil || rows[0].State != store.StateDiscarded || counts.Inbox.Applied != 0 || counts.Inbox.Lost != 1 {
			t.Errorf("%v: %v, %+v", err, rows, counts.Inbox)
		}
	})
	bubble(t, "case_3_an_end_whose_answer_is_lost_is_counted_once_and_called_for_once", func(t *testing.T) {
		st, made := &opening{Store: memstore.New(), never: true}, calls{}
		fillInbox(t, st.Store, 3)
		st.lose.Store(true)
		counts := runsLeased(t, st, func(_ context.Context, _ consumer.Call, m *semel.Message) error {
			made[m.Identity.ID]++
			return nil
		}, leasedConfig())
		if counts.Inbox.Applied != 3 || counts.Inbox.Duplicates != 0 || made["m0"] != 1 || st.lose.Load() {
			t.Errorf("%+v, %v", counts.Inbox, made)
		}
	})
	t.Run("K1_what_does_not_fit_is_refused", func(t *testing.T) {
		handle := func(context.Context, consumer.Call, *semel.Message) error { return nil }
		for says, change := range map[string]func(*consumer.Config){
			"Strategy: is marker":      func(c *consumer.Config) { c.Strategy, c.AckOnReceipt = consumer.StrategyMarker, false },
			"AckOnReceipt: is not set": func(c *consumer.Config) { c.AckOnReceipt = false },
		} {
			c := leasedConfig()
			change(&c)
			if _, err := consumer.NewLeased(memstore.New(), handle, c); err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("%s: %v", says, err)
			}
		}
		if _, err := consumer.NewLeased(plain(memstore.New()), handle, leasedConfig()); !errors.Is(err, semel.ErrUnsupported) {
			t.Error(err)
		}
		if _, err := consumer.NewLeased[*memstore.Tx](nil, handle, leasedConfig()); err == nil {
			t.Error("NewLeased accepted a nil store")
		}
		running := mustNewLeased(t, memstore.New(), handle, leasedConfig())
		if _, err := running.Process(t.Context(), message("m", "{}")); !errors.Is(err, semel.ErrUnsupported) {
			t.Error(err)
		}
	})
}
