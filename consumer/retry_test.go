package consumer_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/internal/reasonname"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/store"
)

var byAnn = store.Act{Verb: "retry", Who: "ann", Why: "the account is there now"}

// parked returns a store with one parked message "1", and the row of that message.
func parked(t *testing.T) (*memstore.Store, store.StoredRow) {
	t.Helper()
	st := memstore.New()
	runs(t, st, func(context.Context, *memstore.Tx, *semel.Message) error { return semel.Park("no account") }, config(newListSource(message("1", `{"n":1}`))))
	return st, row(t, st, "1")
}

// retried retries a row and runs a consumer on that row. The parameter inner is the memstore that st wraps.
func retried(t *testing.T, st store.TxStore[*memstore.Tx], inner *memstore.Store, r store.StoredRow, handle func(context.Context, *memstore.Tx, *semel.Message) error) *consumer.Consumer[*memstore.Tx] {
	t.Helper()
	if err := errors.Join(inner.Requeue(t.Context(), byAnn, r.Seen())...); err != nil {
		t.Fatal(err)
	}
	running := mustNew(t, st, handle, config(nil))
	if err := running.Work(t.Context(), r.Number); err != nil {
		t.Fatal(err)
	}
	return running
}

func TestRetryOfARow(t *testing.T) {
	bubble(t, "a_retry_applies_the_message_once_and_completes_its_row_and_marker", func(t *testing.T) {
		st, r := parked(t)
		var seen semel.Message
		retried(t, st, st, r, func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
			seen = *m
			return add(ctx, tx, m)
		})
		if string(seen.Body) != `{"n":1}` || seen.Identity != r.Key || seen.Attempt != 2 {
			t.Errorf("the handler saw %+v", seen)
		}
		if after := row(t, st, "1"); after.State != store.StateCompleted || !outcome(t, st, "1").Already(store.Applied) || effect(t, st, "1") != "1" {
			t.Errorf("%+v, effect %s", after, effect(t, st, "1"))
		}
		acts, err := st.Acts(t.Context(), r.Number, 0)
		if err != nil || len(acts) != 1 || acts[0].Who != "ann" || acts[0].Result != "done" {
			t.Errorf("acts %+v, %v", acts, err)
		}
	})
	bubble(t, "trap_21_an_operators_retry_of_an_applied_message_has_no_effect_and_says_so", func(t *testing.T) {
		st, r := parked(t)
		retried(t, st, st, r, add)
		for revision, want := range map[int64]error{r.Revision: semel.ErrChanged, row(t, st, "1").Revision: semel.ErrState} {
			if err := errors.Join(st.Requeue(t.Context(), byAnn, store.RowRevision{Number: r.Number, Revision: revision})...); !errors.Is(err, want) {
				t.Errorf("a second retry returned %v, want %v", err, want)
			}
		}
		if counts := runs(t, st, add, config(newListSource(message("1", `{"n":1}`)))); counts.Duplicates != 1 || effect(t, st, "1") != "1" {
			t.Errorf("a copy afterwards: %+v", counts)
		}
	})
	bubble(t, "trap_87_a_row_is_decoded_by_the_release_that_works_on_it", func(t *testing.T) {
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
			st := memstore.New()
			m := message("1", c.body)
			m.Attributes.Type, m.Attributes.DataSchema = "payment.made", "https://example.com/payment/2"
			runs(t, st, c.before, config(newListSource(m)))
			r := row(t, st, "1")
			retried(t, st, st, r, c.after)
			if effect(t, st, "1") != "3" {
				t.Errorf("%s: parked as %q; effect %s, %+v", c.what, r.Reason, effect(t, st, "1"), row(t, st, "1"))
			}
		}
	})
}

func TestARetryThatFails(t *testing.T) {
	for name, fails := range map[string]func() error{
		"error": func() error { return errTest }, "panic": func() error { panic("no") },
	} {
		bubble(t, "it_leaves_nothing_and_its_error_and_attempts_stand_on_the_row/"+name, func(t *testing.T) {
			st, r := parked(t)
			running := retried(t, st, st, r, func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
				_ = add(ctx, tx, m)
				return fails()
			})
			after := row(t, st, "1")
			if after.State != store.StateFailedRetryable || after.Attempts != r.Attempts+1 || !strings.Contains(after.LastError, "no") || effect(t, st, "1") != "" || !outcome(t, st, "1").Already(store.Waiting) {
				t.Errorf("%+v, effect %q", after, effect(t, st, "1"))
			}
			if left := running.Unfinished(); len(left) != 1 || left[0].Messages != 1 {
				t.Errorf("left %+v", left)
			}
		})
	}
	bubble(t, "one_that_was_interrupted_is_no_attempt_and_its_claim_is_given_back", func(t *testing.T) {
		st, r := parked(t)
		if err := errors.Join(st.Requeue(t.Context(), byAnn, r.Seen())...); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		interrupted := mustNew(t, st, func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
			cancel()
			<-ctx.Done()
			return ctx.Err()
		}, config(nil))
		if err := interrupted.Work(ctx); err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if after := row(t, st, "1"); after.Attempts != r.Attempts || after.State != store.StateReceived || after.Started != 0 {
			t.Errorf("%+v", after)
		}
		if err := mustNew(t, st, add, config(nil)).Work(t.Context()); err != nil || effect(t, st, "1") != "1" {
			t.Errorf("%v, effect %q", err, effect(t, st, "1"))
		}
	})
}

func TestDecisionsOfARetriedHandler(t *testing.T) {
	for name, c := range map[string]struct {
		answer  error
		state   store.RowState
		outcome store.Outcome
	}{
		"B3_one_that_finds_the_effect_done_completes_the_row_without_one": {semel.Duplicate(errors.New("unique")), store.StateCompleted, store.Applied},
		"C4_one_whose_handler_discards_closes_the_row":                    {semel.Discard("not ours"), store.StateDiscarded, store.Discarded},
		"C4_one_whose_handler_parks_leaves_it_parked":                     {semel.Park("again"), store.StateParked, store.Parked},
	} {
		bubble(t, name, func(t *testing.T) {
			st, r := parked(t)
			retried(t, st, st, r, func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
				return errors.Join(add(ctx, tx, m), c.answer)
			})
			if after := row(t, st, "1"); after.State != c.state || !outcome(t, st, "1").Already(c.outcome) || effect(t, st, "1") != "" {
				t.Errorf("%+v, effect %q", after, effect(t, st, "1"))
			}
		})
	}
}

func TestARetryDoesNotProcessUnprocessableMessages(t *testing.T) {
	for reason, c := range map[semel.Reason]struct {
		only consumer.Filter
		body string
		says string
	}{
		reasonname.Filtered:    {consumer.Filter{Types: []string{"order"}}, `{}`, "Config.Filter leaves"},
		semel.ReasonTooLarge:   {consumer.Filter{}, strings.Repeat("x", 70<<10), "only the beginning of its message"},
		semel.ReasonMalformed:  {consumer.Filter{}, `5`, "could not be read"},
		semel.ReasonNoIdentity: {consumer.Filter{}, `{}`, "no usable identity"},
	} {
		bubble(t, "A4_it_is_parked_again_with_its_own_reason/"+string(reason), func(t *testing.T) {
			st, m := memstore.New(), &semel.Message{Body: []byte(c.body)}
			if reason != semel.ReasonNoIdentity {
				m = message("1", c.body)
			}
			consumes := config(newListSource(m))
			consumes.MaxBody, consumes.Filter, consumes.Fingerprint = 64<<10, c.only, panickingPrint{}
			if reason == reasonname.Filtered {
				consumes.OnFiltered = consumer.OnFilteredPark
			}
			running := mustNew(t, st, add, consumes)
			if err := running.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			before := rows(t, st)
			if len(before) != 1 || before[0].Reason != reason {
				t.Fatalf("%+v", before)
			}
			ran := false
			retried(t, st, st, before[0], func(context.Context, *memstore.Tx, *semel.Message) error { ran = true; return nil })
			after := rows(t, st)
			if len(after) != 1 || after[0].State != store.StateParked || after[0].Reason != reason || ran {
				t.Fatalf("ran %t: %+v", ran, after)
			}
			if says := after[0].LastError; !strings.Contains(says, c.says) || reason != semel.ReasonNoIdentity && strings.Contains(says, "identity") {
				t.Errorf("%s", says)
			}
		})
	}
}
