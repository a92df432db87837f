package consumer_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/contract"
	"github.com/semel-go/semel/memstore"
)

var byAnn = contract.Act{Verb: "retry", Who: "ann", Why: "the account is there now"}

// parked is a store with one parked message "1" and its row.
func parked(t *testing.T) (*memstore.Store, contract.StoredRow) {
	t.Helper()
	store := memstore.New()
	runs(t, store, func(context.Context, *memstore.Tx, *semel.Message) error { return semel.Park("no account") }, config(newListSource(message("1", `{"n":1}`))))
	return store, row(t, store, "1")
}

func TestRetryOfARow(t *testing.T) {
	bubble(t, "a_retry_applies_the_message_once_and_completes_its_row_and_marker", func(t *testing.T) {
		store, r := parked(t)
		var seen semel.Message
		consumer := mustNew(t, store, func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
			seen = *m
			return add(ctx, tx, m)
		}, config(nil))
		if err := consumer.Retry(t.Context(), r, byAnn); err != nil {
			t.Fatal(err)
		}
		if string(seen.Body) != `{"n":1}` || seen.Identity != r.Key || seen.Attempt != 2 {
			t.Errorf("the handler saw %+v", seen)
		}
		if after := row(t, store, "1"); after.State != contract.StateCompleted || !outcome(t, store, "1").Already(semel.Applied) || effect(t, store, "1") != "1" {
			t.Errorf("%+v, effect %s", after, effect(t, store, "1"))
		}
		acts, err := store.Acts(t.Context(), r.Number, 0)
		if err != nil || len(acts) != 1 || acts[0].Who != "ann" || acts[0].Result != "done" {
			t.Errorf("acts %+v, %v", acts, err)
		}
		for _, stale := range []contract.StoredRow{r, row(t, store, "1")} {
			if err := consumer.Retry(t.Context(), stale, byAnn); !errors.Is(err, semel.ErrChanged) {
				t.Errorf("a second retry says %v", err)
			}
		}
	})
	bubble(t, "trap_87_a_row_is_decoded_by_the_release_that_retries_it", func(t *testing.T) {
		type handler = func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error
		decode := func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
			v, err := semel.JSON[struct{ N float64 }](m)
			if err != nil {
				return err
			}
			return tx.Add("effect "+m.Identity.ID, int64(v.N))
		}
		for _, c := range []struct {
			what, body    string
			before, after handler
		}{
			{"a body of tomorrow", `{"n": "three"}`, decode, func(_ context.Context, tx *memstore.Tx, m *semel.Message) error {
				if string(m.Body) != `{"n": "three"}` {
					return semel.Park("the body changed on its way")
				}
				return tx.Add("effect "+m.Identity.ID, 3)
			}},
			{"a type of tomorrow", `{"n": 3}`, consumer.ByType(map[string]handler{"payment.made@1": decode}), consumer.ByType(map[string]handler{"payment.made@1": add, "payment.made@2": decode})},
		} {
			store := memstore.New()
			m := message("1", c.body)
			m.Attributes.Type, m.Attributes.DataSchema = "payment.made", "https://example.com/payment/2"
			runs(t, store, c.before, config(newListSource(m)))
			r := row(t, store, "1")
			if err := mustNew(t, store, c.after, config(nil)).Retry(t.Context(), r, byAnn); err != nil || effect(t, store, "1") != "3" {
				t.Errorf("%s: parked as %q; the retry says %v, effect %s", c.what, r.Reason, err, effect(t, store, "1"))
			}
		}
	})
}

func TestRetryOfARowThatIsApplied(t *testing.T) {
	bubble(t, "trap_21_an_operators_retry_of_an_applied_message_has_no_effect_and_says_so", func(t *testing.T) {
		store, r := parked(t)
		consumer := mustNew(t, store, add, config(nil))
		if err := consumer.Retry(t.Context(), r, byAnn); err != nil {
			t.Fatal(err)
		}
		if err := consumer.Retry(t.Context(), r, byAnn); !errors.Is(err, semel.ErrChanged) || effect(t, store, "1") != "1" {
			t.Errorf("%v, effect %s", err, effect(t, store, "1"))
		}
		if counts := runs(t, store, add, config(newListSource(message("1", `{"n":1}`)))); counts.Duplicates != 1 || effect(t, store, "1") != "1" {
			t.Errorf("a copy afterwards: %+v", counts)
		}
	})
	bubble(t, "trap_144_twenty_concurrent_retries_of_a_row_have_one_effect", func(t *testing.T) {
		store, r := parked(t)
		consumer := mustNew(t, store, slow(time.Second), config(nil))
		var mutex sync.Mutex
		done, changed := 0, 0
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				err := consumer.Retry(t.Context(), r, byAnn)
				mutex.Lock()
				defer mutex.Unlock()
				switch {
				case err == nil:
					done++
				case errors.Is(err, semel.ErrChanged):
					changed++
				default:
					t.Error(err)
				}
			})
		}
		all.Wait()
		if done != 1 || changed != 19 || effect(t, store, "1") != "1" {
			t.Errorf("%d done, %d changed, effect %s", done, changed, effect(t, store, "1"))
		}
	})
}

func TestARetryThatFails(t *testing.T) {
	bubble(t, "a_failed_retry_leaves_nothing_and_is_recorded_with_its_error", func(t *testing.T) {
		for name, fails := range map[string]func() error{
			"error": func() error { return errTest }, "panic": func() error { panic("no") },
		} {
			store, r := parked(t)
			consumer := mustNew(t, store, func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
				_ = add(ctx, tx, m)
				return fails()
			}, config(nil))
			if err := consumer.Retry(t.Context(), r, byAnn); err == nil {
				t.Errorf("%s: the retry says nothing", name)
			}
			after := row(t, store, "1")
			if after.State != contract.StateParked || after.Attempts != r.Attempts+1 || !strings.Contains(after.LastError, "no") || effect(t, store, "1") != "" || !outcome(t, store, "1").Already(semel.Parked) {
				t.Errorf("%s: %+v, effect %q", name, after, effect(t, store, "1"))
			}
			if acts, err := store.Acts(t.Context(), r.Number, 0); err != nil || len(acts) != 1 || acts[0].Result == "done" {
				t.Errorf("%s: acts %+v, %v", name, acts, err)
			}
		}
	})
	bubble(t, "a_retry_that_was_interrupted_or_met_a_dead_store_is_no_attempt", func(t *testing.T) {
		store, r := parked(t)
		ctx, cancel := context.WithCancel(t.Context())
		interrupted := mustNew(t, store, func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
			cancel()
			<-ctx.Done()
			return ctx.Err()
		}, config(nil))
		if err := interrupted.Retry(ctx, r, byAnn); err == nil || row(t, store, "1").Attempts != r.Attempts {
			t.Errorf("%v, %+v", err, row(t, store, "1"))
		}
		dead := &downStore{watch(store)}
		if err := mustNew(t, dead, func(context.Context, *memstore.Tx, *semel.Message) error { return &downError{} }, config(nil)).Retry(t.Context(), r, byAnn); err == nil || row(t, store, "1").Attempts != r.Attempts {
			t.Errorf("%v, %+v", err, row(t, store, "1"))
		}
	})
	bubble(t, "a_retry_whose_handler_ends_its_goroutine_leaves_the_row_free", func(t *testing.T) {
		store, r := parked(t)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_ = mustNew(t, store, func(context.Context, *memstore.Tx, *semel.Message) error { runtime.Goexit(); return nil }, config(nil)).Retry(t.Context(), r, byAnn)
		}()
		<-ended
		began := time.Now()
		if err := mustNew(t, store, add, config(nil)).Retry(t.Context(), r, byAnn); err != nil || time.Since(began) != 0 || effect(t, store, "1") != "1" {
			t.Errorf("%v after %v, effect %s", err, time.Since(began), effect(t, store, "1"))
		}
	})
	bubble(t, "a_retry_that_runs_longer_than_the_timeout_is_cut_off", func(t *testing.T) {
		store, r := parked(t)
		c := config(nil)
		c.Timeout = time.Second
		if err := mustNew(t, store, slow(time.Minute), c).Retry(t.Context(), r, byAnn); err == nil || effect(t, store, "1") != "" || row(t, store, "1").State != contract.StateParked {
			t.Errorf("%v, effect %q", err, effect(t, store, "1"))
		}
	})
}

func TestARetryThatIsRefused(t *testing.T) {
	bubble(t, "a_conflict_is_not_retried_while_the_first_content_is_applied", func(t *testing.T) {
		store := memstore.New()
		runs(t, store, add, config(newListSource(message("1", `{"n":1}`), message("1", `{"n":2}`))))
		r := row(t, store, "1")
		if err := mustNew(t, store, add, config(nil)).Retry(t.Context(), r, byAnn); !errors.Is(err, semel.ErrConflict) || effect(t, store, "1") != "1" {
			t.Errorf("%v, effect %s", err, effect(t, store, "1"))
		}
		if err := store.Discard(t.Context(), r.Number, r.Revision, contract.Act{Verb: "discard", Who: "ann"}); err != nil || row(t, store, "1").State != contract.StateDiscarded || outcome(t, store, "1").Already(semel.Discarded) {
			t.Errorf("%v, %+v", err, row(t, store, "1"))
		}
	})
	bubble(t, "a_row_of_another_consumer_or_without_its_message_is_refused", func(t *testing.T) {
		store, r := parked(t)
		other := config(nil)
		other.Name = "shipping"
		if err := mustNew(t, store, add, other).Retry(t.Context(), r, byAnn); !errors.Is(err, semel.ErrState) {
			t.Errorf("another consumer's: %v", err)
		}
		r.Message = nil
		if err := mustNew(t, store, add, config(nil)).Retry(t.Context(), r, byAnn); !errors.Is(err, semel.ErrState) || effect(t, store, "1") != "" {
			t.Errorf("without its message: %v", err)
		}
		if err := mustNew(t, contract.TxStore[*memstore.Tx](bare{store}), add, config(nil)).Retry(t.Context(), r, byAnn); !errors.Is(err, semel.ErrUnsupported) {
			t.Errorf("on a store without rows: %v", err)
		}
	})
}
