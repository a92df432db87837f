package consumer_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/internal/eventkind"
	"github.com/semel-go/semel/internal/reasonname"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/store"
)

// create is a handler whose effect is rejected if it exists already (unique key).
func create(_ context.Context, tx *memstore.Tx, m *semel.Message) error {
	key := "invoice " + m.Identity.ID
	old, err := tx.Get(key)
	if err != nil {
		return err
	}
	if old != nil {
		return semel.Duplicate(errors.New("the invoice exists"))
	}
	return tx.Set(key, m.Body)
}

func TestAUniqueBusinessKey(t *testing.T) {
	bubble(t, "B3_without_a_marker_the_effects_own_constraint_makes_the_second_a_duplicate", func(t *testing.T) {
		st, source := memstore.New(), newListSource(message("1", `a`), message("2", `b`), message("1", `a`), message("1", `c`))
		c := config(source)
		c.Strategy = consumer.StrategyBusinessKey
		counts := runs(t, st, create, c)
		if counts.Applied != 2 || counts.Duplicates != 2 || len(source.settled) != 4 || string(st.Get("invoice 1")) != "a" || outcome(t, st, "1").Kind != store.Fresh {
			t.Errorf("%+v", counts)
		}
		if len(rows(t, st)) != 0 {
			t.Errorf("rows %+v", rows(t, st))
		}
	})
	bubble(t, "B16_with_a_marker_that_says_fresh_the_constraint_is_a_backstop_and_is_told", func(t *testing.T) {
		st, seen := memstore.New(), &witness{}
		natural := config(newListSource(message("1", `a`)))
		natural.Strategy = consumer.StrategyBusinessKey
		runs(t, st, create, natural) // the effect exists, and there is no marker
		c := config(newListSource(message("1", `a`), message("2", `b`)))
		c.Observers = []semel.Observer{seen}
		counts := runs(t, st, create, c)
		if counts.Applied != 1 || counts.Duplicates != 1 || len(seen.eventsOf(eventkind.Backstop)) != 1 || seen.eventsOf(eventkind.Backstop)[0].Key.ID != "1" || !outcome(t, st, "1").Already(store.Applied) {
			t.Errorf("%+v, events %+v", counts, seen.events)
		}
		again := config(newListSource(message("1", `a`)))
		again.Observers = []semel.Observer{seen}
		if counts := runs(t, st, create, again); counts.Duplicates != 1 || len(seen.eventsOf(eventkind.Backstop)) != 1 {
			t.Errorf("again: %+v, events %+v", counts, seen.events)
		}
	})
	bubble(t, "trap_77_a_producer_that_makes_a_new_id_for_each_try_is_met_by_a_business_key_only", func(t *testing.T) {
		tries := func() *listSource {
			return newListSource(message("try 1", `{"order":7,"line":1}`), message("try 2", `{"order":7,"line":1}`), message("try 3", `{"order":7,"line":2}`))
		}
		if counts := runs(t, memstore.New(), add, config(tries())); counts.Applied != 3 {
			t.Errorf("by the producer's id: %+v", counts)
		}
		c := config(tries())
		c.Identity = identity.By("body:/order", "body:/line")
		if counts := runs(t, memstore.New(), add, c); counts.Applied != 2 || counts.Duplicates != 1 {
			t.Errorf("by the business key: %+v", counts)
		}
	})
}

func TestNaturalIdempotency(t *testing.T) {
	bubble(t, "B13_no_marker_is_written_and_every_delivery_is_counted_and_settled_after_its_commit", func(t *testing.T) {
		store := watch(memstore.New())
		source := newListSource(message("1", `a`), message("1", `b`), message("", `c`))
		c := consumer.Config{Name: "billing", Source: source, Strategy: consumer.StrategyNatural, NaturalReason: "the last state wins", Logger: quiet()}
		counts := runs(t, store, func(_ context.Context, tx *memstore.Tx, m *semel.Message) error {
			return tx.Set("state", m.Body)
		}, c)
		if counts.Applied != 3 || len(source.settled) != 3 || string(store.Get("state")) != "c" || store.marks != 0 {
			t.Errorf("%+v, %d marks, state %s", counts, store.marks, store.Get("state"))
		}
	})
	bubble(t, "B13_what_fails_for_good_is_parked_and_its_copies_are_counted", func(t *testing.T) {
		store := memstore.New()
		for range 2 {
			c := consumer.Config{Name: "billing", Source: newListSource(message("1", `a`)), Strategy: consumer.StrategyNatural, NaturalReason: "order: irrelevant", Logger: quiet()}
			runs(t, store, func(context.Context, *memstore.Tx, *semel.Message) error { return semel.Permanent(errTest) }, c)
		}
		if all := rows(t, store); len(all) != 1 || all[0].Repeated != 1 || string(all[0].Message.Body) != "a" {
			t.Errorf("%+v", all)
		}
	})
}

// payIfOpen is a handler that pays an invoice if the invoice awaits payment.
func payIfOpen(_ context.Context, tx *memstore.Tx, m *semel.Message) error {
	status, err := tx.Get("status " + m.Identity.ID)
	if err != nil {
		return err
	}
	changed := driver.RowsAffected(0)
	if string(status) == "awaiting" {
		changed = 1
		if err := tx.Set("status "+m.Identity.ID, []byte("paid")); err != nil {
			return err
		}
	}
	return semel.OneRow(changed, nil)
}

func awaiting(t *testing.T, st *memstore.Store, id string) {
	t.Helper()
	b, _, err := st.Begin(t.Context(), store.TxOptions{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Tx(store.All).Set("status "+id, []byte("awaiting")); err != nil {
		t.Fatal(err)
	}
	b.Commit(t.Context(), store.Ending{})
}

func TestAGuardedEffect(t *testing.T) {
	bubble(t, "B6_a_guard_that_meets_nothing_parks_by_default", func(t *testing.T) {
		st := memstore.New()
		awaiting(t, st, "1")
		counts := runs(t, st, payIfOpen, config(newListSource(message("1", `{}`), message("2", `{}`))))
		if r := row(t, st, "2"); counts.Applied != 1 || counts.Parked != 1 || r.Reason != semel.ReasonPrecondition || r.Attempts != 1 || !strings.Contains(r.LastError, "changed 0 rows, not 1") {
			t.Errorf("%+v, %+v", counts, r)
		}
	})
	bubble(t, "B6_or_discards_where_the_policy_says_so", func(t *testing.T) {
		st := memstore.New()
		c := config(newListSource(message("2", `{}`)))
		c.OnPrecondition = consumer.ActionDiscard
		if counts := runs(t, st, payIfOpen, c); counts.Discarded != 1 || row(t, st, "2").State != store.StateDiscarded || !outcome(t, st, "2").Already(store.Discarded) {
			t.Errorf("%+v, %+v", counts, rows(t, st))
		}
	})
	bubble(t, "B6_or_waits_until_the_condition_is_met", func(t *testing.T) {
		st := memstore.New()
		c := config(newListSource(message("2", `{}`)))
		c.OnPrecondition, c.Retry.MaxAttempts = consumer.ActionRetry, 100
		run := start(t, mustNew(t, st, payIfOpen, c))
		pass(5 * time.Second)
		awaiting(t, st, "2")
		if err := run.wait(); err != nil || string(st.Get("status 2")) != "paid" || len(rows(t, st)) != 0 {
			t.Errorf("%v, status %s, rows %+v", err, st.Get("status 2"), rows(t, st))
		}
	})
	bubble(t, "B6_or_parks_when_the_attempts_are_used_up", func(t *testing.T) {
		st := memstore.New()
		c := config(newListSource(message("2", `{}`)))
		c.OnPrecondition, c.Retry.MaxAttempts = consumer.ActionRetry, 3
		if counts := runs(t, st, payIfOpen, c); counts.Parked != 1 || counts.Retried != 2 || row(t, st, "2").Attempts != 3 {
			t.Errorf("%+v, %+v", counts, rows(t, st))
		}
	})
	t.Run("OneRow_passes_errors_on", func(t *testing.T) {
		if err := semel.OneRow(nil, errTest); err != errTest {
			t.Errorf("%v", err)
		}
		if err := semel.OneRow(driver.RowsAffected(1), nil); err != nil {
			t.Errorf("%v", err)
		}
		var unmet *semel.HandlerError
		if err := semel.OneRow(driver.RowsAffected(2), nil); !errors.As(err, &unmet) || unmet.Decision != semel.DecidePreconditionFailed {
			t.Errorf("two rows: %v", err)
		}
		if err := semel.OneRow(driver.ResultNoRows, nil); err == nil {
			t.Error("a result without a row count counts as success")
		}
	})
}

func TestHandlersByType(t *testing.T) {
	bubble(t, "C15_an_unknown_type_is_parked_with_that_reason_and_spends_no_attempt", func(t *testing.T) {
		typed := func(id, kind string) *semel.Message {
			m := message(id, `{}`)
			m.Headers = append(m.Headers, semel.Header{Name: "ce-type", Value: []byte(kind)})
			return m
		}
		store, source := memstore.New(), newListSource(typed("1", "made"), typed("2", "lost"), typed("3", "made"))
		counts := runs(t, store, consumer.ByType(map[string]func(context.Context, *memstore.Tx, *semel.Message) error{"made": add}), config(source))
		if r := row(t, store, "2"); counts.Applied != 2 || counts.Parked != 1 || r.Reason != reasonname.UnknownType || r.Attempts != 0 || len(source.settled) != 3 {
			t.Errorf("%+v, %+v", counts, r)
		}
	})
}

func TestAHandlerOfWholeBatches(t *testing.T) {
	all := func(bad string, fails func() error, sizes *[]int) func(context.Context, *memstore.Tx, []*semel.Message) error {
		return func(ctx context.Context, tx *memstore.Tx, ms []*semel.Message) error {
			*sizes = append(*sizes, len(ms))
			found := false
			for _, m := range ms {
				found = found || m.Identity.ID == bad
				if err := add(ctx, tx, m); err != nil {
					return err
				}
			}
			if found {
				return fails()
			}
			return nil
		}
	}
	bubble(t, "C7_the_message_to_blame_is_found_by_halves_and_its_neighbours_are_unharmed", func(t *testing.T) {
		for name, fails := range map[string]func() error{"error": func() error { return semel.Permanent(errTest) }, "panic": func() error { panic("no") }, "retry": func() error { return errTest }} {
			for _, bad := range []int{0, 37, 99} {
				store, source, sizes := memstore.New(), newListSource(numbered("m", 100)...), []int(nil)
				c := config(source)
				c.Retry.MaxAttempts = 2
				running, err := consumer.NewBatch(store, all(fmt.Sprint("m", bad), fails, &sizes), c)
				if err != nil {
					t.Fatal(err)
				}
				if err := running.Run(t.Context()); err != nil {
					t.Fatal(err)
				}
				addsUp(t, running.Counts())
				if counts := running.Counts(); counts.Applied != 99 || counts.Parked != 1 || len(source.settled) != 100 {
					t.Errorf("%s at %d: %+v", name, bad, counts)
				}
				for i := range 100 {
					if id := fmt.Sprint("m", i); i != bad && effect(t, store, id) != "1" {
						t.Errorf("%s at %d: %s has effect %q", name, bad, id, effect(t, store, id))
					}
				}
				if sizes[0] != 100 || len(sizes) > 40 {
					t.Errorf("%s at %d: %d calls, of sizes %v", name, bad, len(sizes), sizes)
				}
			}
		}
	})
	bubble(t, "C7_a_whole_batch_is_one_call_and_one_transaction", func(t *testing.T) {
		store, sizes := watch(memstore.New()), []int(nil)
		running, err := consumer.NewBatch(store, all("none", nil, &sizes), config(newListSource(append(numbered("m", 100), numbered("m", 50)...)...)))
		if err != nil {
			t.Fatal(err)
		}
		if err := running.Run(t.Context()); err != nil || fmt.Sprint(sizes) != "[100]" || len(store.begins) != 1 || running.Counts().Duplicates != 50 {
			t.Errorf("%v, sizes %v, %d transactions, %+v", err, sizes, len(store.begins), running.Counts())
		}
	})
}
