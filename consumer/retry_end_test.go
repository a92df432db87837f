package consumer_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/contract"
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
		if after := row(t, store, "1"); after.State != contract.StateCompleted || !outcome(t, store, "1").Already(semel.Applied) || effect(t, store, "1") != "" {
			t.Errorf("%+v, effect %q", after, effect(t, store, "1"))
		}
	})
	bubble(t, "C4_a_retry_whose_handler_discards_closes_the_row", func(t *testing.T) {
		store, r := parked(t)
		consumer := mustNew(t, store, answering(semel.Discard("not ours")), config(nil))
		if err := consumer.Retry(t.Context(), r, byAnn); err != nil {
			t.Fatal(err)
		}
		if after := row(t, store, "1"); after.State != contract.StateDiscarded || !outcome(t, store, "1").Already(semel.Discarded) || effect(t, store, "1") != "" {
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
	for reason, c := range map[semel.Reason]struct {
		only consumer.Only
		body string
		says string
	}{
		semel.ReasonForeign:    {consumer.Only{Types: []string{"order"}}, `{}`, "Config.Only leaves"},
		semel.ReasonTooLarge:   {consumer.Only{}, strings.Repeat("x", 70<<10), "only the beginning of its message"},
		semel.ReasonMalformed:  {consumer.Only{}, `5`, "could not be read"},
		semel.ReasonNoIdentity: {consumer.Only{}, `{}`, "no usable identity"},
	} {
		bubble(t, "A4_what_is_never_processed_is_refused_with_its_own_reason/"+string(reason), func(t *testing.T) {
			store, m := memstore.New(), &semel.Message{Body: []byte(c.body)}
			if reason != semel.ReasonNoIdentity {
				m = message("1", c.body)
			}
			consumes := config(newListSource(m))
			consumes.MaxBody, consumes.Only, consumes.Fingerprint = 64<<10, c.only, panickingPrint{}
			if reason == semel.ReasonForeign {
				consumes.Otherwise = consumer.OtherwisePark
			}
			consumer := mustNew(t, store, add, consumes)
			if err := consumer.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			all := rows(t, store)
			if len(all) != 1 || all[0].Reason != reason {
				t.Fatalf("%+v", all)
			}
			err := consumer.Retry(t.Context(), all[0], byAnn)
			if !errors.Is(err, semel.ErrState) || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), string(reason)) {
				t.Errorf("%v", err)
			}
			if reason != semel.ReasonNoIdentity && strings.Contains(err.Error(), "identity") {
				t.Errorf("a message that has an identity: %v", err)
			}
		})
	}
}
