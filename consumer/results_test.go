package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/faults"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// makes is a handler that increments a counter and stores a result (KeepResult).
func makes(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
	if err := consumer.KeepResult(ctx, tx, m, []byte("made of "+m.Identity.ID)); err != nil {
		return err
	}
	return add(ctx, tx, m)
}

// duplicateResults contains, by the id of the message, the results that OnDuplicate got.
type duplicateResults map[string][]string

func (o duplicateResults) hook(_ context.Context, m *semel.Message, result []byte) error {
	text := string(result)
	if result == nil {
		text = "nothing"
	}
	o[m.Identity.ID] = append(o[m.Identity.ID], text)
	return nil
}

func TestADuplicateGetsItsResult(t *testing.T) {
	for _, strategy := range []consumer.Strategy{consumer.StrategyMarker, consumer.StrategyInbox} {
		bubble(t, "C12_the_result_of_its_first_processing_in_one_batch_and_later_"+strings.ReplaceAll(strategy.String(), " ", "_"), func(t *testing.T) {
			store := memstore.New()
			for range 2 {
				heard := duplicateResults{}
				c := config(newListSource(append(numbered("m", 20), numbered("m", 20)...)...))
				c.Strategy, c.OnDuplicate = strategy, heard.hook
				counts, err := consume(t, store, makes, c)
				if err != nil || int(counts.Duplicates) != len(flat(heard)) || counts.Applied+counts.Duplicates != 40 {
					t.Fatalf("%+v, %v: %v", counts, err, heard)
				}
				for id, results := range heard {
					for _, r := range results {
						if r != "made of "+id {
							t.Errorf("%s: %q", id, r)
						}
					}
				}
			}
			if effect(t, store, "m7") != "1" {
				t.Errorf("m7 took effect %s times", effect(t, store, "m7"))
			}
		})
	}
	bubble(t, "C12_an_error_of_the_hook_leaves_its_duplicate_alone_unsettled_until_it_succeeds", func(t *testing.T) {
		store := memstore.New()
		if _, err := consume(t, store, makes, config(newListSource(numbered("m", 3)...))); err != nil {
			t.Fatal(err)
		}
		source, tries := newListSource(append(numbered("m", 3), numbered("n", 3)...)...), 0
		c := config(source)
		c.OnDuplicate = func(_ context.Context, m *semel.Message, result []byte) error {
			if m.Identity.ID != "m1" {
				return nil
			}
			switch tries++; tries {
			case 1:
				return errors.New("the answer cannot be sent")
			case 2:
				panic("nobody is there")
			}
			if source.settled["0"] != 1 || source.settled["2"] != 1 || source.settled["1"] != 0 {
				t.Errorf("settled: %v", source.settled)
			}
			return nil
		}
		counts, err := consume(t, store, makes, c)
		if err != nil || counts.Duplicates != 3 || counts.Applied != 3 || tries != 3 || source.settled["1"] != 1 {
			t.Errorf("%+v, %v, %d tries, settled %v", counts, err, tries, source.settled)
		}
	})
	bubble(t, "C12_a_store_that_cannot_be_read_leaves_duplicates_unsettled", func(t *testing.T) {
		down := 0
		store := memstore.New(memstore.Fail(func(op string) error {
			if op == "results" && down < 3 {
				down++
				return errors.New("the store is down")
			}
			return nil
		}))
		heard := duplicateResults{}
		c := config(newListSource(append(numbered("m", 5), numbered("m", 5)...)...))
		c.OnDuplicate = heard.hook
		if counts, err := consume(t, store, makes, c); err != nil || counts.Duplicates != 5 || len(flat(heard)) != 5 || down != 3 {
			t.Errorf("%+v, %v, %v", counts, err, heard)
		}
	})
	bubble(t, "C12_what_kept_nothing_or_was_parked_has_none", func(t *testing.T) {
		store, heard := memstore.New(), duplicateResults{}
		c := config(newListSource(append(numbered("m", 3), numbered("m", 3)...)...))
		c.OnDuplicate = heard.hook
		_, err := consume(t, store, func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
			switch m.Identity.ID {
			case "m0":
				return consumer.KeepResult(ctx, tx, m, nil) // an empty result counts as a result
			case "m1":
				_ = consumer.KeepResult(ctx, tx, m, []byte("lost"))
				return semel.Permanent(errors.New("refused"))
			}
			return nil
		}, c)
		if err != nil || fmt.Sprint(heard) != "map[m0:[] m1:[nothing] m2:[nothing]]" {
			t.Errorf("%v, %v", err, heard)
		}
	})
}

func flat(o duplicateResults) (all []string) {
	for _, results := range o {
		all = append(all, results...)
	}
	return all
}

func TestAResultThatCannotBeKept(t *testing.T) {
	refused := func(t *testing.T, says string, change func(*consumer.Config), keep func(context.Context, *memstore.Tx, *semel.Message) error) {
		t.Helper()
		st := memstore.New()
		c := config(newListSource(message("m", "1")))
		if change != nil {
			change(&c)
		}
		var got error
		_, _ = consume(t, st, func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
			got = keep(ctx, tx, m)
			return nil
		}, c)
		if got == nil || !strings.Contains(got.Error(), says) {
			t.Errorf("%v", got)
		}
	}
	bubble(t, "C12_is_refused_with_the_reason", func(t *testing.T) {
		refused(t, "has 65537 bytes, and at most 65536 are kept", nil, func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
			return consumer.KeepResult(ctx, tx, m, make([]byte, admin.MaxResult+1))
		})
		refused(t, "the context that a handler was given", nil, func(_ context.Context, tx *memstore.Tx, m *semel.Message) error {
			return consumer.KeepResult(context.Background(), tx, m, nil)
		})
		refused(t, "the message that the handler was given", nil, func(ctx context.Context, tx *memstore.Tx, _ *semel.Message) error {
			return consumer.KeepResult(ctx, tx, &semel.Message{}, nil)
		})
		refused(t, "keeps no results in a int", nil, func(ctx context.Context, _ *memstore.Tx, m *semel.Message) error {
			return consumer.KeepResult(ctx, 1, m, nil)
		})
		refused(t, "the Strategy natural writes none", func(c *consumer.Config) {
			c.Strategy, c.NaturalReason, c.Fingerprint = consumer.StrategyNatural, "a test", identity.FingerprintNone()
		}, func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
			return consumer.KeepResult(ctx, tx, m, nil)
		})
	})
	t.Run("C12_a_hook_that_no_duplicate_could_be_told_by_is_refused", func(t *testing.T) {
		c := config(nil)
		c.OnDuplicate = duplicateResults{}.hook
		c.Strategy, c.NaturalReason = consumer.StrategyNatural, "a test"
		if _, err := consumer.New(memstore.New(), add, c); err == nil || !strings.Contains(err.Error(), "no marker tells which messages are duplicates") {
			t.Error(err)
		}
		c.Strategy, c.NaturalReason = consumer.StrategyMarker, ""
		bare := struct{ store.TxStore[*memstore.Tx] }{memstore.New()}
		if _, err := consumer.New(bare, add, c); !errors.Is(err, semel.ErrUnsupported) {
			t.Error(err)
		}
	})
}

func TestProcessAndResults(t *testing.T) {
	bubble(t, "C12_a_caller_looks_a_result_up_by_the_identity", func(t *testing.T) {
		running := mustNew(t, memstore.New(), makes, config(nil))
		key := semel.Key{Consumer: "billing", ID: "m0"}
		if _, err := running.Result(t.Context(), key); !errors.Is(err, semel.ErrUnsupported) {
			t.Error(err)
		}
		for _, ending := range []source.End{source.EndApplied, source.EndDuplicate} {
			a := ask(t.Context(), running, numbered("m", 1)...)[0]
			result, err := running.Result(t.Context(), key)
			if a.err != nil || a.Ending != ending || err != nil || string(result) != "made of m0" {
				t.Errorf("%+v, %q, %v", a, result, err)
			}
		}
		if result, err := running.Result(t.Context(), semel.Key{Consumer: "billing", ID: "m1"}); result != nil || err != nil {
			t.Errorf("%q, %v", result, err)
		}
		closed(t, running)
	})
	bubble(t, "C12_of_an_answer_that_is_applied_once_the_result_is_kept_once", func(t *testing.T) {
		store, heard := memstore.New(), duplicateResults{}
		c := config(newListSource(numbered("m", 3)...))
		c.Strategy, c.AckOnReceipt, c.OnDuplicate = consumer.StrategyInbox, true, heard.hook
		call := func(_ context.Context, m *semel.Message) (string, error) { return "answer to " + m.Identity.ID, nil }
		apply := func(ctx context.Context, tx *memstore.Tx, answer string, m *semel.Message) error {
			return consumer.KeepResult(ctx, tx, m, []byte(answer))
		}
		for range 2 {
			c.Source = newListSource(numbered("m", 3)...)
			running, err := consumer.NewCalling(store, call, apply, c, firstSeed)
			if err != nil {
				t.Fatal(err)
			}
			if err := running.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := running.Work(t.Context()); !errors.Is(err, semel.ErrClosed) && err != nil {
				t.Fatal(err)
			}
		}
		if fmt.Sprint(heard) != "map[m0:[answer to m0] m1:[answer to m1] m2:[answer to m2]]" {
			t.Errorf("%v", heard)
		}
	})
}

func TestAResultAtEachPointOfDeath(t *testing.T) {
	// A process dies at a fault point. Another process starts on the same store, and each message is delivered again.
	for _, point := range []faults.Point{faults.AfterEffect, faults.BeforeCommit, faults.AfterCommit, faults.BeforeSettle} {
		bubble(t, fmt.Sprintf("C12_law_1_a_result_is_there_exactly_when_its_effect_is_%v", point), func(t *testing.T) {
			st := memstore.New()
			source := newListSource(numbered("m", 4)...)
			source.endless = true
			dies, died := make(chan struct{}), make(chan struct{})
			c := config(source)
			c.Workers = 1
			first := true
			plan := faults.Plan{At: func(p faults.Point, _ int) {
				if p == point && first {
					first = false
					close(died)
					<-dies
				}
			}}
			run := start(t, mustNew(t, st, makes, c, plan))
			<-died
			results, err := st.Results(t.Context(), []admin.ResultOf{{Scope: 1, ID: []byte("m0")}})
			if err != nil || (results[0] != nil) != (effect(t, st, "m0") == "1") {
				t.Errorf("at %v: effect %q, result %q, %v", point, effect(t, st, "m0"), results[0], err)
			}
			close(dies)
			run.stop()
			if err := run.wait(); err != nil && !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			heard := duplicateResults{}
			again := config(newListSource(append(numbered("m", 4), numbered("m", 4)...)...))
			again.OnDuplicate = heard.hook
			if _, err := consume(t, st, makes, again); err != nil {
				t.Fatal(err)
			}
			for id, all := range heard {
				for _, result := range all {
					if result != "made of "+id || effect(t, st, id) != "1" {
						t.Errorf("%s: effect %s, result %q", id, effect(t, st, id), result)
					}
				}
			}
			if len(heard) != 4 {
				t.Errorf("%v", heard)
			}
		})
	}
}
