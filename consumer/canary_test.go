package consumer_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/internal/recording"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/store"
)

// leaky is a handler that also has an effect outside its transaction: it counts its runs in memory.
type leaky struct {
	runs     map[string]int
	attempts []int
	// then, if set, is called after the effect, with the number of the run.
	then func(run int) error
}

func (l *leaky) handle(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
	if l.runs == nil {
		l.runs = map[string]int{}
	}
	l.runs[m.Identity.ID]++
	l.attempts = append(l.attempts, m.Attempt)
	order, err := tx.Get("order")
	if err != nil {
		return err
	}
	if err := tx.Set("order", append(slices.Clip(order), m.Identity.ID+" "...)); err != nil {
		return err
	}
	if err := add(ctx, tx, m); err != nil || l.then == nil {
		return err
	}
	return l.then(l.runs[m.Identity.ID])
}

// wantOneEffect checks that each of n messages took effect once.
func wantOneEffect(t *testing.T, st *memstore.Store, n int) {
	t.Helper()
	for i := range n {
		if id := fmt.Sprint("m", i); effect(t, st, id) != "1" || !outcome(t, st, id).Already(store.Applied) {
			t.Errorf("%s has the effect %q", id, effect(t, st, id))
		}
	}
}

func canaryConfig(oneIn, messages int) (consumer.Config, *listSource) {
	source := newListSource(numbered("m", messages)...)
	c := config(source)
	c.Workers, c.Canary = 1, oneIn
	return c, source
}

func TestCanaryReruns(t *testing.T) {
	bubble(t, "L7b_the_first_success_of_a_canary_is_rolled_back_and_the_second_takes_effect", func(t *testing.T) {
		st, h := memstore.New(), &leaky{}
		c, source := canaryConfig(1, 5)
		began := time.Now()
		counts := runs(t, st, h.handle, c)
		wantOneEffect(t, st, 5)
		for id, n := range h.runs {
			if n != 2 || source.settled[strings.TrimPrefix(id, "m")] != 1 {
				t.Errorf("%s ran %d times and was settled %d times", id, n, source.settled[strings.TrimPrefix(id, "m")])
			}
		}
		if counts.Applied != 5 || counts.Rerun != 5 || counts.Retried+counts.Parked+counts.Duplicates != 0 || slices.Max(h.attempts) != 1 {
			t.Errorf("%+v, attempts %v", counts, h.attempts)
		}
		if took := time.Since(began); took > 0 {
			t.Errorf("the reruns waited %v", took)
		}
	})
	bubble(t, "L7b_law_8_all_other_messages_run_once_in_their_order_and_each_process_chooses_the_same_canaries", func(t *testing.T) {
		var chosen map[string]int
		for process := range 2 {
			st, h := memstore.New(), &leaky{}
			c, _ := canaryConfig(10, 200)
			counts := runs(t, st, h.handle, c)
			wantOneEffect(t, st, 200)
			order, twice := strings.Fields(string(st.Get("order"))), 0
			for i, id := range order {
				if id != fmt.Sprint("m", i) || h.runs[id] > 2 {
					t.Fatalf("%d. is %s, which ran %d times", i, id, h.runs[id])
				}
				twice += h.runs[id] - 1
			}
			if len(order) != 200 || twice < 10 || twice > 40 || counts.Rerun != int64(twice) {
				t.Errorf("%d in order, %d ran twice, %+v", len(order), twice, counts)
			}
			if process == 1 && !maps.Equal(chosen, h.runs) {
				t.Error("another process has chosen other canaries")
			}
			chosen = h.runs
		}
	})
	bubble(t, "L7b_nothing_runs_twice_without_the_setting", func(t *testing.T) {
		st, h := memstore.New(), &leaky{}
		c, _ := canaryConfig(0, 20)
		if counts := runs(t, st, h.handle, c); counts.Rerun != 0 || len(h.attempts) != 20 {
			t.Errorf("%+v, %d runs", counts, len(h.attempts))
		}
	})
	bubble(t, "L7b_a_rerun_is_logged_at_level_debug", func(t *testing.T) {
		var log bytes.Buffer
		c, _ := canaryConfig(1, 1)
		c.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		runs(t, memstore.New(), add, c)
		if strings.Count(log.String(), `level=DEBUG msg="canary rerun" consumer=billing id=m0`) != 1 {
			t.Error(log.String())
		}
	})
}

func TestFailuresAroundACanaryRerun(t *testing.T) {
	bubble(t, "L7b_a_failure_of_the_second_run_is_an_attempt_and_the_next_success_stands", func(t *testing.T) {
		st := memstore.New()
		h := &leaky{then: func(run int) error {
			if run == 2 {
				return errTest
			}
			return nil
		}}
		c, _ := canaryConfig(1, 1)
		counts := runs(t, st, h.handle, c)
		wantOneEffect(t, st, 1)
		if !slices.Equal(h.attempts, []int{1, 1, 2}) || counts.Rerun != 1 || counts.Retried != 1 {
			t.Errorf("attempts %v, %+v", h.attempts, counts)
		}
	})
	bubble(t, "L7b_a_handler_that_always_fails_when_it_runs_again_is_parked", func(t *testing.T) {
		st := memstore.New()
		h := &leaky{then: func(run int) error {
			if run > 1 {
				return errTest
			}
			return nil
		}}
		c, _ := canaryConfig(1, 1)
		c.Retry.MaxAttempts = 3
		counts := runs(t, st, h.handle, c)
		if r := row(t, st, "m0"); r.State != store.StateParked || r.Attempts != 3 || h.runs["m0"] != 4 || counts.Parked != 1 {
			t.Errorf("%+v after %d runs, %+v", r, h.runs["m0"], counts)
		}
	})
	bubble(t, "L7b_a_commit_that_fails_later_causes_no_second_rerun_on_purpose", func(t *testing.T) {
		st, h, commits := watch(memstore.New()), &leaky{}, 0
		st.onCommit = func(ctx context.Context, commit func(context.Context) store.Result) store.Result {
			if commits++; commits == 1 {
				commit(cancelledContext())
				return store.Result{Outcome: store.NotCommitted, Class: store.ClassContended, Culprit: store.NoCulprit, Err: errTest}
			}
			return commit(ctx)
		}
		c, _ := canaryConfig(1, 1)
		counts := runs(t, st, h.handle, c)
		wantOneEffect(t, st.Store, 1)
		if h.runs["m0"] != 3 || counts.Rerun != 2 || slices.Max(h.attempts) != 1 {
			t.Errorf("%d runs, %+v", h.runs["m0"], counts)
		}
	})
	bubble(t, "L7b_law_7_a_bad_neighbour_is_parked_alone", func(t *testing.T) {
		st := memstore.New()
		c, source := canaryConfig(2, 30)
		c.Retry.MaxAttempts = 2
		counts := runs(t, st, func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
			if m.Identity.ID == "m7" {
				return errTest
			}
			return add(ctx, tx, m)
		}, c)
		for i := range 30 {
			if id := fmt.Sprint("m", i); (effect(t, st, id) == "1") == (i == 7) {
				t.Errorf("%s has the effect %q", id, effect(t, st, id))
			}
		}
		if r := row(t, st, "m7"); r.Attempts != 2 || counts.Applied != 29 || counts.Parked != 1 || len(source.settled) != 30 {
			t.Errorf("%+v, %+v", r, counts)
		}
	})
	bubble(t, "L7b_a_consumer_that_stops_commits_the_first_success", func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		st := memstore.New()
		h := &leaky{then: func(int) error {
			stop()
			synctest.Wait()
			return nil
		}}
		c, _ := canaryConfig(1, 1)
		if err := mustNew(t, st, h.handle, c).Run(ctx); err != nil || h.runs["m0"] != 1 {
			t.Errorf("%v after %d runs", err, h.runs["m0"])
		}
		wantOneEffect(t, st, 1)
	})
}

func TestCanaryRerunsOfEveryKindOfHandlerInATransaction(t *testing.T) {
	bubble(t, "L7b_with_an_inbox_a_row_counts_one_attempt", func(t *testing.T) {
		st, h := memstore.New(), &leaky{}
		c, source := canaryConfig(1, 5)
		c.Strategy, c.AckOnReceipt = consumer.StrategyInbox, true
		counts := runs(t, st, h.handle, c)
		wantOneEffect(t, st, 5)
		for _, r := range rows(t, st) {
			if r.State != store.StateCompleted || r.Attempts != 1 || h.runs[r.Key.ID] != 2 {
				t.Errorf("%+v after %d runs", r, h.runs[r.Key.ID])
			}
		}
		if counts.Received != 5 || counts.Inbox.Claimed != 5 || counts.Inbox.Applied != 5 || counts.Rerun != 5 || len(source.settled) != 5 {
			t.Errorf("%+v", counts)
		}
	})
	bubble(t, "L7b_of_each_step_the_first_success_is_rolled_back", func(t *testing.T) {
		st, steps := memstore.New(), ""
		note := func(name string) run {
			return func(_ context.Context, _ *memstore.Tx, m *semel.Message, done consumer.Done) ([]byte, error) {
				steps += fmt.Sprintf("%s(%s) ", name, done.Output("reserve"))
				return []byte(name), nil
			}
		}
		c := steppedConfig(newListSource(message("1", "{}")))
		c.Canary = 1
		counts := stepped(t, st, c, countedStep("reserve", note("reserve")), countedStep("ship", note("ship")))
		wantSteps(t, st, "1", store.StateCompleted, "reserve", "ship")
		if steps != "reserve() reserve() ship(reserve) ship(reserve) " || counts.Rerun != 2 {
			t.Errorf("%s %+v", steps, counts)
		}
	})
	bubble(t, "L7b_a_handler_of_whole_batches_runs_twice_for_the_batch", func(t *testing.T) {
		st, batches := memstore.New(), 0
		c, _ := canaryConfig(3, 20)
		running, err := consumer.NewBatch(st, func(ctx context.Context, tx *memstore.Tx, all []*semel.Message) error {
			batches++
			for _, m := range all {
				if err := add(ctx, tx, m); err != nil {
					return err
				}
			}
			return nil
		}, c)
		if err != nil {
			t.Fatal(err)
		}
		counts := ranToItsEnd(t, running)
		wantOneEffect(t, st, 20)
		if batches != 2 || counts.Rerun != 20 || counts.Applied != 20 {
			t.Errorf("%d batches, %+v", batches, counts)
		}
	})
	bubble(t, "L7b_case_12_a_call_of_Process_returns_after_the_second_success", func(t *testing.T) {
		st, h := memstore.New(), &leaky{}
		c := config(nil)
		c.Canary = 1
		running := mustNew(t, st, h.handle, c)
		d, err := running.Process(t.Context(), message("m0", `{}`))
		if err != nil || d.Kind != semel.Ack || h.runs["m0"] != 2 {
			t.Errorf("%+v, %v after %d runs", d, err, h.runs["m0"])
		}
		wantOneEffect(t, st, 1)
		closed(t, running)
	})
	bubble(t, "L7b_lanes_that_run_in_parallel", func(t *testing.T) {
		st := memstore.New()
		var messages []*semel.Message
		for i, m := range numbered("m", 60) {
			m.Topic = fmt.Sprint("lane", i%6)
			messages = append(messages, m)
		}
		c := config(newListSource(messages...))
		c.Canary = 2
		if counts := runs(t, st, add, c); counts.Applied != 60 || counts.Rerun < 10 || counts.Rerun > 60 {
			t.Errorf("%+v", counts)
		}
		wantOneEffect(t, st, 60)
	})
}

func TestARecordingOfCanaryRerunsIsReplayed(t *testing.T) {
	bubble(t, "L7b_K14_the_replay_makes_the_same_decisions", func(t *testing.T) {
		var recorder consumer.Recorder
		c, _ := canaryConfig(3, 50)
		c.Recorder = &recorder
		recorder.Broken = func(law string) { t.Errorf("broken: %s", law) }
		counts := runs(t, memstore.New(), add, c)
		var text bytes.Buffer
		if err := recorder.Write(&text, "a test"); err != nil {
			t.Fatal(err)
		}
		file, err := recording.Read(&text)
		if err != nil {
			t.Fatal(err)
		}
		if result, err := file.Replay(nil); err != nil || result.Differs != nil || result.Broken != nil || counts.Rerun == 0 {
			t.Errorf("%+v, %v, %+v", result, err, counts)
		}
	})
}

func TestACanaryNeedsAMarkerAndATransaction(t *testing.T) {
	call := func(context.Context, consumer.Call, *semel.Message) error { return nil }
	c := config(nil)
	c.Canary, c.Strategy, c.AckOnReceipt = 1000, consumer.StrategyInbox, true
	_, leased := consumer.NewLeased(memstore.New(), call, c)
	c.Strategy, c.AckOnReceipt = consumer.StrategyMarker, false
	_, keyed := consumer.NewKeyed(memstore.NewKeys(), consumer.KeyPolicy{Keep: time.Hour}, call, c)
	ask := func(context.Context, *semel.Message) (string, error) { return "", nil }
	apply := func(context.Context, *memstore.Tx, string, *semel.Message) error { return nil }
	_, calling := consumer.NewCalling(memstore.New(), ask, apply, c)
	for name, err := range map[string]error{"NewLeased": leased, "NewKeyed": keyed, "NewCalling": calling} {
		t.Run("L7b_"+name+"_refuses_it", func(t *testing.T) {
			if err == nil || !strings.Contains(err.Error(), "Canary: it runs handlers twice, but these handlers call other systems") {
				t.Error(err)
			}
		})
	}
	for _, s := range []consumer.Strategy{consumer.StrategyNatural, consumer.StrategyBusinessKey} {
		t.Run(fmt.Sprintf("L7b_%v_refuses_it", s), func(t *testing.T) {
			c := config(nil)
			c.Canary, c.Strategy = 1000, s
			want := "Canary: it runs handlers twice, but with the Strategy " + s.String() + " no marker protects the effect"
			if _, err := consumer.New(memstore.New(), add, c); err == nil || !strings.Contains(err.Error(), want) {
				t.Error(err)
			}
		})
	}
}
