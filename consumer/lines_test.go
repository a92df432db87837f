package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/internal/reasonname"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/store"
)

// keyedMessage returns message n of a key.
func keyedMessage(key string, n int) *semel.Message {
	m := message(fmt.Sprintf("%s-%d", key, n), fmt.Sprintf(`{"order":%q,"version":%d}`, key, n))
	m.Key = []byte(key)
	return m
}

// byKey returns a configuration with LanesKey. A run ends when no row is due.
func byKey(source *listSource) consumer.Config {
	source.endless = true
	c := config(source)
	c.Lanes, c.IdleExit = consumer.LanesKey, 3*time.Second
	return c
}

// stumbles returns a handler that first calls the function fails. If fails returns nil, the handler does the same as
// the handler follows.
func stumbles(fails func(id string) error) func(context.Context, *memstore.Tx, *semel.Message) error {
	return func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
		if err := fails(m.Identity.ID); err != nil {
			return err
		}
		return follows(ctx, tx, m)
	}
}

func parks(ids ...string) func(string) error {
	return func(id string) error {
		for _, other := range ids {
			if id == other {
				return semel.Park("look at it")
			}
		}
		return nil
	}
}

func TestFollowersOfAParkedMessage(t *testing.T) {
	bubble(t, "C8_case_7_law_8_those_of_its_key_wait_and_others_go_on", func(t *testing.T) {
		st, source := memstore.New(), newListSource(keyedMessage("a", 1), keyedMessage("a", 2), keyedMessage("b", 1), keyedMessage("a", 3), keyedMessage("b", 2))
		c := byKey(source)
		counts := runs(t, st, stumbles(parks("a-1")), c)
		if streamOf(st, "a") != "" || streamOf(st, "b") != upTo(2) || counts.Parked != 1 || counts.Waiting != 2 || len(source.settled) != 5 {
			t.Errorf("%q and %q after %+v", streamOf(st, "a"), streamOf(st, "b"), counts)
		}
		if r := row(t, st, "a-3"); r.State != store.StateBlocked || r.Reason != reasonname.Behind || r.Place == 0 {
			t.Errorf("%+v", r)
		}
		late := newListSource(keyedMessage("a", 4), keyedMessage("b", 3))
		runs(t, st, follows, byKey(late))
		if streamOf(st, "a") != "" || streamOf(st, "b") != upTo(3) {
			t.Errorf("a later run: %q and %q", streamOf(st, "a"), streamOf(st, "b"))
		}
		first := row(t, st, "a-1")
		if err := errors.Join(st.Requeue(t.Context(), store.Act{Verb: "retry", Who: "ann"}, first.Seen())...); err != nil {
			t.Fatal(err)
		}
		runs(t, st, follows, byKey(newListSource(keyedMessage("a", 5))))
		if streamOf(st, "a") != upTo(5) {
			t.Errorf("retried: %q", streamOf(st, "a"))
		}
	})
	bubble(t, "C8_G6_a_person_lets_them_pass", func(t *testing.T) {
		st, source := memstore.New(), newListSource(keyedMessage("a", 1), keyedMessage("a", 2), keyedMessage("a", 3))
		runs(t, st, stumbles(parks("a-1")), byKey(source))
		first := row(t, st, "a-1")
		if err := errors.Join(st.Skip(t.Context(), store.Act{Verb: "skip", Who: "ann"}, first.Seen())...); err != nil {
			t.Fatal(err)
		}
		runs(t, st, follows, byKey(newListSource(keyedMessage("a", 4))))
		if streamOf(st, "a") != "2 3 4 " || row(t, st, "a-1").State != store.StateParked {
			t.Errorf("%q", streamOf(st, "a"))
		}
	})
	bubble(t, "C8_with_skip_they_go_on", func(t *testing.T) {
		st, source := memstore.New(), newListSource(keyedMessage("a", 1), keyedMessage("a", 2))
		c := byKey(source)
		c.OnParked = consumer.OnParkedSkip
		runs(t, st, stumbles(parks("a-1")), c)
		if streamOf(st, "a") != "2 " {
			t.Errorf("%q", streamOf(st, "a"))
		}
	})
	bubble(t, "C8_case_7_a_partition_whose_message_is_parked_waits_too", func(t *testing.T) {
		st, source := memstore.New(), newListSource(keyedMessage("a", 1), keyedMessage("b", 1), keyedMessage("a", 2))
		c := byKey(source)
		c.Lanes, c.OnParked = consumer.LanesPartition, consumer.OnParkedBlock
		counts := runs(t, st, stumbles(parks("a-1")), c)
		if streamOf(st, "b") != "" || counts.Waiting != 2 {
			t.Errorf("%q after %+v", streamOf(st, "b"), counts)
		}
	})
	bubble(t, "C8_a_message_without_key_or_identity_keeps_nothing_back", func(t *testing.T) {
		none, foreign := keyedMessage("a", 1), keyedMessage("a", 2)
		none.Key, foreign.Headers = nil, nil
		st, source := memstore.New(), newListSource(none, foreign, keyedMessage("a", 3))
		runs(t, st, stumbles(parks("a-1")), byKey(source))
		if streamOf(st, "a") != "3 " {
			t.Errorf("%q", streamOf(st, "a"))
		}
	})
}

func TestFollowersOfARetry(t *testing.T) {
	bubble(t, "C8_D8_law_8_they_wait_in_the_store_as_long_as_it_does", func(t *testing.T) {
		store, source := memstore.New(), newListSource(keyedMessage("a", 1), keyedMessage("a", 2), keyedMessage("b", 1), keyedMessage("a", 3))
		c := byKey(source)
		c.IdleExit = 20 * time.Minute
		var mutex sync.Mutex
		left := 2
		counts := runs(t, store, stumbles(func(id string) error {
			mutex.Lock()
			defer mutex.Unlock()
			if left--; id == "a-1" && left >= 0 {
				return semel.RetryAfter(errors.New("later"), 5*time.Minute)
			}
			return nil
		}), c)
		if streamOf(store, "a") != upTo(3) || streamOf(store, "b") != upTo(1) || counts.Waiting != 3 {
			t.Errorf("%q and %q after %+v", streamOf(store, "a"), streamOf(store, "b"), counts)
		}
	})
	bubble(t, "D8_law_8_keys_keep_their_order_behind_a_receipt", func(t *testing.T) {
		for seed := range uint64(20) {
			keepsOrder(t, seed, func(c *consumer.Config) {
				c.Strategy, c.AckOnReceipt = consumer.StrategyInbox, true
			})
		}
	})
	bubble(t, "C8_law_8_keys_keep_their_order_through_retries_in_memory_and_in_the_store", func(t *testing.T) {
		for seed := range uint64(20) {
			keepsOrder(t, seed, func(*consumer.Config) {})
		}
	})
}

// keepsOrder runs messages of several keys, of which some messages fail. keepsOrder compares the order of the
// effects with the order of arrival.
func keepsOrder(t *testing.T, seed uint64, policy func(*consumer.Config)) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 3))
	var all []*semel.Message
	last := map[string]int{}
	for range 200 {
		key := string(rune('a' + r.IntN(6)))
		last[key]++
		all = append(all, keyedMessage(key, last[key]))
	}
	store, source := memstore.New(), newListSource(all...)
	c := byKey(source)
	c.Workers, c.Batch.MaxSize, c.MaxInMemoryWait, c.IdleExit = 4, 7, time.Second, time.Hour
	c.Retry.InitialDelay, c.Retry.MaxDelay, c.Retry.MaxAttempts = 100*time.Millisecond, 30*time.Second, 100
	policy(&c)
	var mutex sync.Mutex
	runs(t, store, stumbles(func(id string) error {
		mutex.Lock()
		defer mutex.Unlock()
		if r.IntN(8) == 0 {
			return errors.New("bad luck")
		}
		return nil
	}), c)
	for key, n := range last {
		if got := streamOf(store, key); got != upTo(n) {
			t.Errorf("seed %d: key %s took effect as %s", seed, key, got)
		}
	}
	for _, r := range rows(t, store) {
		if !strings.Contains("COMPLETED", string(r.State)) {
			t.Errorf("seed %d: a row is left: %s %s", seed, r.Key.ID, r.State)
		}
	}
}
