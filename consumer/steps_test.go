package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/internal/reasonname"
	"github.com/semel-go/semel/internal/steplimit"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// run is the function of a step in a test. A step also counts its runs.
type run = func(ctx context.Context, tx *memstore.Tx, m *semel.Message, done consumer.Done) ([]byte, error)

// countedStep returns a step that counts its effect and calls the function then.
func countedStep(name string, then run) consumer.Step[*memstore.Tx] {
	return consumer.Step[*memstore.Tx]{Name: name, Run: func(ctx context.Context, tx *memstore.Tx, m *semel.Message, done consumer.Done) ([]byte, error) {
		if err := tx.Add(name+" "+m.Identity.ID, 1); err != nil {
			return nil, err
		}
		if then != nil {
			return then(ctx, tx, m, done)
		}
		return []byte(name + " of " + m.Identity.ID), nil
	}}
}

func steppedConfig(src source.Source) consumer.Config {
	c := config(src)
	c.Strategy, c.AckOnReceipt = consumer.StrategyInbox, true
	return c
}

// stepped runs a consumer that has the given steps until the consumer is idle.
func stepped(t *testing.T, store *memstore.Store, c consumer.Config, steps ...consumer.Step[*memstore.Tx]) semel.Counts {
	t.Helper()
	all, err := consumer.NewSteps(store, steps, c)
	if err != nil {
		t.Fatal(err)
	}
	if err := all.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	return all.Counts()
}

func wantSteps(t *testing.T, st *memstore.Store, id string, state store.RowState, names ...string) store.StoredRow {
	t.Helper()
	r := row(t, st, id)
	var got []string
	for _, s := range r.Steps {
		got = append(got, s.Name)
	}
	if r.State != state || strings.Join(got, " ") != strings.Join(names, " ") {
		t.Errorf("the row of %s is %s with the steps %q, want %s with %q; %s", id, r.State, got, state, names, r.LastError)
	}
	for _, name := range names {
		if n := times(st, name+" "+id); n != 1 {
			t.Errorf("the effect of step %s of %s happened %d times", name, id, n)
		}
	}
	return r
}

func TestSteps(t *testing.T) {
	bubble(t, "C11_each_step_takes_effect_once_and_is_told_what_those_before_it_left", func(t *testing.T) {
		st := memstore.New()
		told := ""
		counts := stepped(t, st, steppedConfig(newListSource(message("1", "{}"), message("1", "{}"))),
			countedStep("reserve", nil),
			countedStep("charge", func(_ context.Context, _ *memstore.Tx, m *semel.Message, done consumer.Done) ([]byte, error) {
				told = string(done.Output("reserve")) + ", " + string(done.Output("charge"))
				return nil, nil
			}),
			countedStep("ship", nil))
		wantSteps(t, st, "1", store.StateCompleted, "reserve", "charge", "ship")
		if told != "reserve of 1, " || counts.Received != 1 || counts.Duplicates != 1 || counts.Inbox.Stepped != 2 || counts.Inbox.Applied != 1 || counts.Inbox.Claimed != 3 {
			t.Errorf("the second step got the output %q; %+v", told, counts)
		}
		if !outcome(t, st, "1").Already(store.Applied) {
			t.Error("the marker does not have the outcome Applied")
		}
	})
	bubble(t, "C11_a_step_that_fails_leaves_those_before_it_done_and_attempts_are_counted_by_step", func(t *testing.T) {
		st := memstore.New()
		fails := func(left int) run {
			return func(_ context.Context, _ *memstore.Tx, m *semel.Message, _ consumer.Done) ([]byte, error) {
				if left--; left >= 0 {
					return nil, errors.New("not yet")
				}
				return nil, nil
			}
		}
		source := newListSource(message("1", "{}"))
		source.endless = true
		c := steppedConfig(source)
		c.Retry, c.IdleExit = consumer.RetryPolicy{MaxAttempts: 3, InitialDelay: time.Millisecond}, time.Minute
		stepped(t, st, c, countedStep("reserve", fails(2)), countedStep("charge", fails(2)), countedStep("ship", fails(2)))
		wantSteps(t, st, "1", store.StateCompleted, "reserve", "charge", "ship")
	})
	bubble(t, "C11_what_is_parked_between_steps_goes_on_after_the_last_that_is_done", func(t *testing.T) {
		st := memstore.New()
		away := true
		steps := []consumer.Step[*memstore.Tx]{countedStep("reserve", nil), countedStep("charge", func(context.Context, *memstore.Tx, *semel.Message, consumer.Done) ([]byte, error) {
			if away {
				return nil, semel.Park("the provider is down")
			}
			return nil, nil
		}), countedStep("ship", nil)}
		stepped(t, st, steppedConfig(newListSource(message("1", "{}"))), steps...)
		r := wantSteps(t, st, "1", store.StateParked, "reserve")
		if times(st, "charge 1") != 0 {
			t.Error("the step that parked took effect")
		}
		away = false
		if err := errors.Join(st.Requeue(t.Context(), byAnn, r.Seen())...); err != nil {
			t.Fatal(err)
		}
		stepped(t, st, steppedConfig(newListSource()), steps...)
		wantSteps(t, st, "1", store.StateCompleted, "reserve", "charge", "ship")
	})
	bubble(t, "C11_an_output_that_is_too_long_is_refused_with_its_step", func(t *testing.T) {
		st := memstore.New()
		long := func(n int) run {
			return func(context.Context, *memstore.Tx, *semel.Message, consumer.Done) ([]byte, error) {
				return make([]byte, n), nil
			}
		}
		stepped(t, st, steppedConfig(newListSource(message("1", "{}"))), countedStep("reserve", long(steplimit.Output)), countedStep("charge", long(steplimit.Output+1)))
		r := wantSteps(t, st, "1", store.StateParked, "reserve")
		if times(st, "charge 1") != 0 || !strings.Contains(r.LastError, "65537 bytes") {
			t.Errorf("%d, %s", times(st, "charge 1"), r.LastError)
		}
	})
}

// A release with other steps must not continue a message that was started with the old steps.
func TestStepsThatChange(t *testing.T) {
	before := []string{"reserve", "charge", "ship"}
	for what, after := range map[string][]string{
		"renamed": {"book", "charge", "ship"}, "moved": {"charge", "reserve", "ship"}, "removed": {"charge", "ship"},
		"all_that_is_left": {"reserve"}, "gone": nil,
	} {
		bubble(t, "C11_a_row_whose_completed_steps_are_others_is_parked/"+what, func(t *testing.T) {
			st := memstore.New()
			away := semel.Park("away")
			steps := func(names []string) (all []consumer.Step[*memstore.Tx]) {
				for _, name := range names {
					all = append(all, countedStep(name, func(context.Context, *memstore.Tx, *semel.Message, consumer.Done) ([]byte, error) {
						if name == "charge" {
							return nil, away
						}
						return nil, nil
					}))
				}
				return all
			}
			stepped(t, st, steppedConfig(newListSource(message("1", "{}"))), steps(before)...)
			away = nil
			again := func() store.StoredRow {
				r := row(t, st, "1")
				if err := errors.Join(st.Requeue(t.Context(), byAnn, r.Seen())...); err != nil {
					t.Fatal(err)
				}
				if after == nil {
					runs(t, st, func(_ context.Context, tx *memstore.Tx, _ *semel.Message) error { return tx.Add("ship 1", 1) }, steppedConfig(newListSource()))
				} else {
					stepped(t, st, steppedConfig(newListSource()), steps(after)...)
				}
				return wantSteps(t, st, "1", store.StateParked, "reserve")
			}
			if r := again(); r.Reason != reasonname.Steps || times(st, "ship 1")+times(st, "charge 1")+times(st, "book 1") != 0 {
				t.Errorf("%q: %s", r.Reason, r.LastError)
			}
			after = []string{"reserve", "charge", "pack", "ship"} // steps after the completed ones may change
			r := row(t, st, "1")
			if err := errors.Join(st.Requeue(t.Context(), byAnn, r.Seen())...); err != nil {
				t.Fatal(err)
			}
			stepped(t, st, steppedConfig(newListSource()), steps(after)...)
			wantSteps(t, st, "1", store.StateCompleted, after...)
		})
	}
}

func TestRequirementsOfSteps(t *testing.T) {
	good := []consumer.Step[*memstore.Tx]{countedStep("reserve", nil), countedStep("charge", nil)}
	for want, change := range map[string]func(c *consumer.Config, steps *[]consumer.Step[*memstore.Tx]){
		"Strategy: is":       func(c *consumer.Config, _ *[]consumer.Step[*memstore.Tx]) { c.Strategy, c.AckOnReceipt = 0, false },
		"AckOnReceipt":       func(c *consumer.Config, _ *[]consumer.Step[*memstore.Tx]) { c.AckOnReceipt = false },
		"two steps":          func(_ *consumer.Config, s *[]consumer.Step[*memstore.Tx]) { *s = append(*s, good[0]) },
		"has no Run":         func(_ *consumer.Config, s *[]consumer.Step[*memstore.Tx]) { (*s)[1].Run = nil },
		"1 to 64 bytes":      func(_ *consumer.Config, s *[]consumer.Step[*memstore.Tx]) { (*s)[1].Name = "" },
		"has at most 32":     func(_ *consumer.Config, s *[]consumer.Step[*memstore.Tx]) { *s = many(33) },
		"the handler is nil": func(_ *consumer.Config, s *[]consumer.Step[*memstore.Tx]) { *s = nil },
	} {
		t.Run(want, func(t *testing.T) {
			c, steps := steppedConfig(newListSource()), append([]consumer.Step[*memstore.Tx](nil), good...)
			change(&c, &steps)
			if _, err := consumer.NewSteps(memstore.New(), steps, c); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v", err)
			}
		})
	}
	c, err := consumer.NewSteps(memstore.New(), good, steppedConfig(newListSource()))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Process(t.Context(), message("1", "{}")); !errors.Is(err, semel.ErrUnsupported) {
		t.Errorf("Process says %v", err)
	}
}

func many(n int) (all []consumer.Step[*memstore.Tx]) {
	for i := range n {
		all = append(all, countedStep(fmt.Sprint("step ", i), nil))
	}
	return all
}

// times returns how often an effect happened.
func times(store *memstore.Store, name string) int {
	n, _ := strconv.Atoi(string(store.Get(name)))
	return n
}
