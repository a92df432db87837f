package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/internal/eventkind"
	"github.com/semel-go/semel/keystore"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/store"
)

// natural is the policy of an effect that is idempotent by nature.
func natural() consumer.KeyPolicy {
	p := keptKeys
	p.FailOpen = "each message sets the whole price"
	return p
}

// failSteps returns a function that makes the given steps of a key store fail. The parameter after says whether
// a step is carried out before it fails.
func failSteps(after bool, steps ...string) func(string, bool) error {
	return func(step string, done bool) error {
		for _, s := range steps {
			if s == step && done == after {
				return errKeysAway
			}
		}
		return nil
	}
}

// kindTally counts events by kind.
type kindTally struct {
	mutex sync.Mutex
	kinds map[semel.EventKind]int
}

func (h *kindTally) Observe(e semel.Event) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if h.kinds == nil {
		h.kinds = map[semel.EventKind]int{}
	}
	h.kinds[e.Kind]++
}

func (h *kindTally) countOf(k semel.EventKind) int {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return h.kinds[k]
}

func TestC10AStoreOfKeysThatIsDown(t *testing.T) {
	always := func(made *callCounter) func(context.Context, consumer.Call, *semel.Message) error {
		return func(_ context.Context, _ consumer.Call, m *semel.Message) error { made.countCall(m); return nil }
	}
	bubble(t, "C10_without_a_declaration_nobody_is_called_and_the_consumer_is_not_ready", func(t *testing.T) {
		keys, made := &flaky{Store: memstore.NewKeys(), fault: failSteps(false, "claim", "end", "extend")}, newCallCounter()
		c := mustNewKeyed(t, keys, keptKeys, always(made), keyedConfigOf(newListSource(numbered("m", 3)...)))
		run := start(t, c)
		pass(time.Minute)
		if ready, why := c.Ready(); ready || !strings.Contains(why, errKeysAway.Error()) {
			t.Errorf("it is ready: %v, %q", ready, why)
		}
		made.want(t, "m0", 0)
		keys.mutex.Lock()
		keys.fault = nil
		keys.mutex.Unlock()
		if err := run.wait(); err != nil || c.Counts().Applied != 3 || c.Counts().WithoutKey != 0 {
			t.Errorf("%v, %+v", err, c.Counts())
		}
	})
	bubble(t, "K8_where_every_worker_waits_to_record_its_call_that_is_told_at_once", func(t *testing.T) {
		for _, ends := range []func(*semel.Message) error{func(*semel.Message) error { return nil }, func(*semel.Message) error { return semel.Retry(errors.New("later")) }} {
			keys, made, seen, text := &flaky{Store: memstore.NewKeys(), fault: failSteps(false, "end")}, newCallCounter(), &witness{}, &log{}
			config := keyedConfigOf(newListSource(numbered("m", 60)...)) // enough messages that each worker gets one
			config.Observers, config.Logger, config.Workers = []semel.Observer{seen}, text.logger(), 2
			c := mustNewKeyed(t, keys, keptKeys, func(_ context.Context, _ consumer.Call, m *semel.Message) error {
				if made.countCall(m) > 1 {
					return nil
				}
				return ends(m)
			}, config)
			run := start(t, c)
			pass(100 * time.Millisecond)
			told := seen.eventsOf(semel.EventNotReady)
			if ready, why := c.Ready(); ready || why != "keys: "+errKeysAway.Error() || len(told) != 2 || told[0].Reason != "keys" || !errors.Is(told[0].Err, errKeysAway) || told[0].Key.ID == "" {
				t.Errorf("ready: %v, %q; events: %+v", ready, why, told)
			}
			keys.mutex.Lock()
			keys.fault = nil
			keys.mutex.Unlock()
			pass(2 * time.Second)
			if ready, why := c.Ready(); !ready || why != "" || len(seen.eventsOf(semel.EventReady)) != 1 {
				t.Errorf("ready: %v, %q; events: %+v", ready, why, seen.eventsOf(semel.EventReady))
			}
			if err := run.wait(); err != nil || c.Counts().Applied != 60 {
				t.Errorf("%v, %+v", err, c.Counts())
			}
			if text := text.String(); strings.Count(text, "does not record calls") != 1 || strings.Count(text, "holds up no end") != 1 {
				t.Errorf("the log is\n%s", text)
			}
		}
	})
	bubble(t, "K8_another_cause_for_which_it_does_not_record_calls_is_told_at_once", func(t *testing.T) {
		keys, made, seen, text := &flaky{Store: memstore.NewKeys(), fault: failSteps(false, "end")}, newCallCounter(), &witness{}, &log{}
		config := keyedConfigOf(newListSource(numbered("m", 1)...))
		config.Observers, config.Logger = []semel.Observer{seen}, text.logger()
		run := start(t, mustNewKeyed(t, keys, keptKeys, always(made), config))
		pass(10 * time.Second)
		keys.mutex.Lock()
		keys.fault = func(step string, _ bool) error {
			if step == "end" {
				return errors.New("the disk is full")
			}
			return nil
		}
		keys.mutex.Unlock()
		pass(5 * time.Second)
		if told := seen.eventsOf(semel.EventNotReady); len(told) != 2 || !strings.Contains(told[1].Err.Error(), "the disk is full") {
			t.Errorf("told are %+v", told)
		}
		if text := text.String(); strings.Count(text, "does not record calls") != 2 || !strings.Contains(text, "the disk is full") {
			t.Errorf("the log is\n%s", text)
		}
		keys.mutex.Lock()
		keys.fault = nil
		keys.mutex.Unlock()
		if err := run.wait(); err != nil {
			t.Error(err)
		}
	})
	for name, fault := range map[string]func(string, bool) error{
		"C10_declared_natural_it_goes_on_where_no_key_can_be_claimed":      failSteps(false, "claim", "end", "extend"),
		"C10_declared_natural_it_goes_on_where_claims_have_no_answer":      failSteps(true, "claim", "end", "extend"),
		"C10_declared_natural_it_goes_on_where_only_completions_fail":      failSteps(false, "end"),
		"C10_declared_natural_it_goes_on_where_completions_have_no_answer": failSteps(true, "end"),
	} {
		bubble(t, name, func(t *testing.T) {
			keys, made, told := &flaky{Store: memstore.NewKeys(), fault: fault}, newCallCounter(), &kindTally{}
			config := keyedConfigOf(newListSource(append(numbered("m", 30), numbered("m", 30)...)...))
			config.Observers = []semel.Observer{told}
			began := time.Now()
			counts := runsKeyed(t, keys, natural(), always(made), config)
			if counts.Applied+counts.Duplicates != 60 || counts.Applied < 30 || counts.WithoutKey == 0 || int64(told.countOf(eventkind.WithoutKey)) != counts.WithoutKey {
				t.Errorf("%+v, told of %d", counts, told.countOf(eventkind.WithoutKey))
			}
			if took := time.Since(began); took > 2*time.Minute {
				t.Errorf("it took %v", took)
			}
			for i := range 30 {
				if n := made.count(fmt.Sprint("m", i)); n < 1 || n > 2 {
					t.Errorf("m%d was called for %d times", i, n)
				}
			}
		})
	}
	bubble(t, "C10_it_asks_once_a_second_and_goes_back_to_keys", func(t *testing.T) {
		keys, made := &flaky{Store: memstore.NewKeys()}, newCallCounter()
		var down atomic.Bool
		keys.fault = func(string, bool) error {
			if down.Load() {
				return errKeysAway
			}
			return nil
		}
		down.Store(true)
		slow := func(_ context.Context, _ consumer.Call, m *semel.Message) error {
			made.countCall(m)
			pass(100 * time.Millisecond)
			return nil
		}
		config := keyedConfigOf(newListSource(numbered("m", 400)...))
		config.Workers = 1
		c := mustNewKeyed(t, keys, natural(), slow, config)
		run := start(t, c)
		pass(20 * time.Second)
		if n := keys.claimed(); n < 10 || n > 25 {
			t.Errorf("in 20 s the store was asked %d times", n)
		}
		if ready, why := c.Ready(); !ready || !strings.Contains(why, "applied without a key") {
			t.Errorf("ready %v, %q", ready, why)
		}
		down.Store(false)
		if err := run.wait(); err != nil {
			t.Fatal(err)
		}
		if counts := c.Counts(); counts.Applied != 400 || counts.WithoutKey < 150 || counts.WithoutKey > 250 {
			t.Errorf("%+v", counts)
		}
		if _, why := c.Ready(); why != "" {
			t.Errorf("afterwards: %q", why)
		}
		made.want(t, "m399", 1)
		if a := keyOf(t, keys, "m399"); a.State != keystore.Completed {
			t.Errorf("the last is %v", a.State)
		}
	})
	bubble(t, "C10_a_store_that_stands_still_costs_a_message_in_a_while_two_seconds", func(t *testing.T) {
		keys, made := &mute{Keys: memstore.NewKeys()}, newCallCounter()
		began := time.Now()
		config := keyedConfigOf(newListSource(numbered("m", 100)...))
		if counts := runsKeyed(t, keys, natural(), always(made), config); counts.Applied != 100 || counts.WithoutKey != 100 {
			t.Errorf("%+v", counts)
		}
		if took := time.Since(began); took > 30*time.Second {
			t.Errorf("it took %v", took)
		}
	})
	bubble(t, "C10_a_lease_that_cannot_be_extended_ends_no_call", func(t *testing.T) {
		keys, made := &flaky{Store: memstore.NewKeys(), fault: failSteps(false, "extend")}, newCallCounter()
		slow := func(ctx context.Context, _ consumer.Call, m *semel.Message) error {
			made.countCall(m)
			pass(20 * time.Second)
			return ctx.Err()
		}
		config := keyedConfigOf(newListSource(numbered("m", 1)...))
		config.Inbox.Lease = 3 * time.Second
		if counts := runsKeyed(t, keys, natural(), slow, config); counts.Applied != 1 || counts.Retried != 0 {
			t.Errorf("%+v", counts)
		}
		made.want(t, "m0", 1)
	})
}

// replaced is a store of leased keys in which another program overwrites the value of key m1 before EndKey.
type replaced struct{ *odd }

func (r *replaced) EndKey(ctx context.Context, key semel.Key, token store.Token, e keystore.Ending) error {
	if key.ID == "m1" {
		return errOdd
	}
	return r.odd.EndKey(ctx, key, token, e)
}

func TestLaw7AKeyThatCannotBeCompletedHarmsNoOther(t *testing.T) {
	bubble(t, "law_7_its_message_has_ended_and_the_others_go_on", func(t *testing.T) {
		keys, made := &replaced{&odd{memstore.NewKeys()}}, newCallCounter()
		c := mustNewKeyed(t, keys, keptKeys, func(_ context.Context, _ consumer.Call, m *semel.Message) error { made.countCall(m); return nil }, keyedConfigOf(newListSource(numbered("m", 5)...)))
		run := start(t, c)
		pass(time.Hour)
		if counts := c.Counts(); counts.Applied != 5 {
			t.Fatalf("after an hour: %+v", counts)
		}
		if err := run.wait(); err != nil {
			t.Error(err)
		}
		made.want(t, "m1", 1)
	})
}

// mute is a key store that does not respond until the caller stops waiting.
type mute struct{ *memstore.Keys }

func (*mute) ClaimKey(ctx context.Context, _ keystore.Claim) (keystore.Answer, error) {
	<-ctx.Done()
	return keystore.Answer{}, ctx.Err()
}
