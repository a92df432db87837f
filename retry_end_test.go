package semel_test

import (
	"context"
	"errors"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/memstore"
)

func answering(err error) func(context.Context, *memstore.Tx, *semel.Message) error {
	return func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
		return errors.Join(add(ctx, tx, m), err)
	}
}

func TestWhatARetrysHandlerDecides(t *testing.T) {
	bubble(t, "B3_a_retry_that_finds_the_effect_done_completes_the_row_without_one", func(t *testing.T) {
		store, r := parked(t)
		consumer := mustNew(t, store, answering(semel.Duplicate(errors.New("unique"))), config(nil))
		if err := consumer.Retry(t.Context(), r, byAnn); err != nil {
			t.Fatal(err)
		}
		if after := row(t, store, "1"); after.State != semel.StateCompleted || outcome(t, store, "1") != semel.AlreadyApplied || effect(t, store, "1") != "" {
			t.Errorf("%+v, effect %q", after, effect(t, store, "1"))
		}
	})
	bubble(t, "C4_a_retry_whose_handler_discards_closes_the_row", func(t *testing.T) {
		store, r := parked(t)
		consumer := mustNew(t, store, answering(semel.Discard("not ours")), config(nil))
		if err := consumer.Retry(t.Context(), r, byAnn); err != nil {
			t.Fatal(err)
		}
		if after := row(t, store, "1"); after.State != semel.StateDiscarded || outcome(t, store, "1") != semel.AlreadyDiscarded || effect(t, store, "1") != "" {
			t.Errorf("%+v, effect %q", after, effect(t, store, "1"))
		}
	})
	bubble(t, "A4_a_row_without_usable_identity_is_never_processed", func(t *testing.T) {
		store := memstore.New()
		runs(t, store, add, config(newListSource(&semel.Message{Body: []byte(`{}`)})))
		all := rows(t, store)
		if len(all) != 1 || !all[0].Surrogate {
			t.Fatalf("%+v", all)
		}
		ran := false
		consumer := mustNew(t, store, func(context.Context, *memstore.Tx, *semel.Message) error { ran = true; return nil }, config(nil))
		if err := consumer.Retry(t.Context(), all[0], byAnn); !errors.Is(err, semel.ErrState) || ran {
			t.Errorf("%v, ran %v", err, ran)
		}
	})
}
