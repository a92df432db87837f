package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/keystore"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// keptKeys is a policy for keys in memory.
var keptKeys = consumer.KeyPolicy{Keep: 30 * 24 * time.Hour, AllowVolatile: "it is a test"}

// keyedConfig returns a configuration that dead-letters messages that cannot be applied.
func keyedConfig(src source.Source) consumer.Config {
	c := deadConfig(src)
	c.Workers, c.Lanes = 4, consumer.LanesNone
	return c
}

// flaky is a key store that returns the errors that a test chooses.
type flaky struct {
	keystore.Store
	mutex sync.Mutex
	// fault, if not nil, is called before and after each step: "claim", "end", "extend".
	fault  func(step string, after bool) error // guarded by mutex
	claims int                                 // guarded by mutex
}

var errKeysAway = errors.New("the key store is down")

func (f *flaky) do(step string, do func() error) error {
	f.mutex.Lock()
	ask := f.fault
	if step == "claim" {
		f.claims++
	}
	f.mutex.Unlock()
	if ask == nil {
		return do()
	}
	if err := ask(step, false); err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	return ask(step, true)
}

func (f *flaky) claimed() int {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.claims
}

func (f *flaky) ClaimKey(ctx context.Context, c keystore.Claim) (a keystore.Answer, err error) {
	return a, f.do("claim", func() error { a, err = f.Store.ClaimKey(ctx, c); return err })
}

func (f *flaky) EndKey(ctx context.Context, key semel.Key, t store.Token, e keystore.Ending) error {
	return f.do("end", func() error { return f.Store.EndKey(ctx, key, t, e) })
}

func (f *flaky) ExtendKey(ctx context.Context, key semel.Key, t store.Token, lease time.Duration) error {
	return f.do("extend", func() error { return f.Store.ExtendKey(ctx, key, t, lease) })
}

func (f *flaky) Durable() (keystore.Durability, string) {
	return keystore.Volatile, "the keys are in the memory of a test"
}

func (f *flaky) Classify(err error) store.Class {
	if errors.Is(err, errKeysAway) {
		return store.ClassDown
	}
	return f.Store.Classify(err)
}

// callCounter counts the calls by id and records the idempotency keys of the calls.
type callCounter struct {
	mutex sync.Mutex
	calls map[string]int
	keys  map[string]map[string]bool
}

func newCallCounter() *callCounter {
	return &callCounter{calls: map[string]int{}, keys: map[string]map[string]bool{}}
}

// countCall counts a call and returns its number among the calls for the message.
func (c *callCounter) countCall(m *semel.Message) int {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	id := m.Identity.ID
	c.calls[id]++
	if c.keys[id] == nil {
		c.keys[id] = map[string]bool{}
	}
	c.keys[id][m.IdempotencyKey("call")] = true
	return c.calls[id]
}

func (c *callCounter) count(id string) int {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.calls[id]
}

// want checks that there were n calls for an id, all with the same key.
func (c *callCounter) want(t *testing.T, id string, n int) {
	t.Helper()
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.calls[id] != n || n > 0 && len(c.keys[id]) != 1 {
		t.Errorf("%s was called for %d times under %d keys; want %d under one", id, c.calls[id], len(c.keys[id]), n)
	}
}

// keyOf returns the state of a key by claiming the key. If the key did not exist, the claim remains, which has no
// effect on the test.
func keyOf(t *testing.T, keys keystore.Store, id string) keystore.Answer {
	t.Helper()
	key, token := semel.Key{Consumer: "billing", ID: id}, store.NewToken()
	a, err := keys.ClaimKey(t.Context(), keystore.Claim{Key: key, Token: token, Lease: time.Second, Keep: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	if a.State == keystore.Claimed {
		if err := keys.EndKey(t.Context(), key, token, keystore.Ending{Event: keystore.Release, Keep: time.Hour}); err != nil {
			t.Fatal(err)
		}
	}
	return a
}

// diesHolding acts like a process that claims a key and then crashes.
func diesHolding(t *testing.T, keys keystore.Store, id string, lease time.Duration) {
	t.Helper()
	a, err := keys.ClaimKey(t.Context(), keystore.Claim{Key: semel.Key{Consumer: "billing", ID: id}, Token: store.NewToken(), Lease: lease, Keep: time.Hour * 1000})
	if err != nil || a.State != keystore.Claimed {
		t.Fatal(a, err)
	}
}

func TestKeyedConsumersCallOnce(t *testing.T) {
	bubble(t, "B11_law_9_each_message_is_called_for_once_and_copies_are_duplicates", func(t *testing.T) {
		keys, made := memstore.NewKeys(), newCallCounter()
		source := newListSource(append(numbered("m", 50), numbered("m", 50)...)...)
		handle := func(_ context.Context, _ consumer.Call, m *semel.Message) error { made.countCall(m); return nil }
		counts := runsKeyed(t, keys, keptKeys, handle, keyedConfigOf(source))
		again := runsKeyed(t, keys, keptKeys, handle, keyedConfigOf(newListSource(numbered("m", 50)...)))
		if counts.Applied != 50 || counts.Duplicates != 50 || again.Duplicates != 50 || again.Applied != 0 {
			t.Errorf("%+v; %+v", counts, again)
		}
		for i := range 50 {
			made.want(t, fmt.Sprint("m", i), 1)
		}
	})
	bubble(t, "law_2_nothing_is_settled_before_its_key_is_completed", func(t *testing.T) {
		keys := &flaky{Store: memstore.NewKeys()}
		source := newListSource(numbered("m", 20)...)
		var completed atomic.Int64
		keys.fault = func(step string, after bool) error {
			if step == "end" && !after {
				completed.Add(1)
			}
			return nil
		}
		source.refuse = func() error { // called with each ack or nack
			if len(source.settled) > int(completed.Load()) {
				t.Errorf("%d are settled, and %d keys ended", len(source.settled), completed.Load())
			}
			return nil
		}
		counts := runsKeyed(t, keys, keptKeys, func(context.Context, consumer.Call, *semel.Message) error { return nil }, keyedConfigOf(source))
		if counts.Applied != 20 || completed.Load() != 20 {
			t.Errorf("%+v, %d ended", counts, completed.Load())
		}
	})
	bubble(t, "law_10_another_content_under_the_same_identity_is_a_conflict", func(t *testing.T) {
		keys, made := memstore.NewKeys(), newCallCounter()
		g := bury(t, message("1", "a"), message("1", "b"))
		counts := runsKeyed(t, keys, keptKeys, func(_ context.Context, _ consumer.Call, m *semel.Message) error { made.countCall(m); return nil }, keyedConfig(g))
		if counts.Applied != 1 || counts.Conflicts != 1 || g.lies(t)["1"] != 1 {
			t.Errorf("%+v, %v", counts, g.lies(t))
		}
		made.want(t, "1", 1)
	})
}

// keyedConfigOf returns a configuration for a source without dead letters.
func keyedConfigOf(src source.Source) consumer.Config {
	c := config(src)
	c.Workers, c.Lanes = 4, consumer.LanesNone
	c.Retry.OnExhausted, c.OnConflict, c.OnBadIdentity = consumer.ActionHalt, consumer.ActionHalt, consumer.ActionHalt
	return c
}

func TestKeyedConsumersFail(t *testing.T) {
	bubble(t, "law_4_C4_each_ending_of_a_handler_ends_its_key_so", func(t *testing.T) {
		keys, made := memstore.NewKeys(), newCallCounter()
		g := bury(t, message("good", ""), message("later", ""), message("bad", ""), message("parked", ""), message("dropped", ""), message("there", ""), message("worse", ""), message("", ""))
		handle := func(_ context.Context, _ consumer.Call, m *semel.Message) error {
			n := made.countCall(m)
			switch id := m.Identity.ID; {
			case id == "later" && n < 3:
				return semel.Retry(errTest)
			case id == "bad":
				return semel.Permanent(errTest)
			case id == "parked":
				return semel.Park("look at it")
			case id == "dropped":
				return semel.Discard("not ours")
			case id == "there":
				return semel.Duplicate(errTest)
			case id == "worse":
				return errTest
			}
			return nil
		}
		counts := runsKeyed(t, keys, keptKeys, handle, keyedConfig(g))
		if counts.Applied != 2 || counts.Duplicates != 1 || counts.DeadLettered != 4 || counts.Discarded != 1 || counts.Parked != 0 {
			t.Errorf("%+v", counts)
		}
		if got := fmt.Sprint(g.lies(t)); got != "map[:1 bad:1 parked:1 worse:1]" {
			t.Errorf("the dead letters are %s", got)
		}
		for id, want := range map[string]string{"good": "completed ", "later": "completed ", "there": "completed ", "bad": "failed dead-lettered\npermanent failure",
			"parked": "failed dead-lettered\nlook at it", "dropped": "failed discarded\nnot ours", "worse": "claimed "} {
			a := keyOf(t, keys, id)
			if got := strings.ReplaceAll(fmt.Sprintf("%v %s", a.State, a.Result), "_", "-"); got != want || a.Unknown() != (id == "worse") {
				t.Errorf("the key of %s is %q, unknown %v; want %q", id, got, a.Unknown(), want)
			}
		}
		made.want(t, "worse", consumer.Defaults().Retry.MaxAttempts)
		again := runsKeyed(t, keys, keptKeys, handle, keyedConfig(bury(t, message("bad", ""), message("dropped", ""), message("there", ""))))
		if again.Duplicates != 3 {
			t.Errorf("copies of ended messages: %+v", again)
		}
	})
	bubble(t, "law_7_a_key_that_cannot_be_claimed_harms_no_other", func(t *testing.T) {
		keys, made := &odd{memstore.NewKeys()}, newCallCounter()
		g := bury(t, message("a", ""), message("odd", ""), message("b", ""))
		counts := runsKeyed(t, keys, keptKeys, func(_ context.Context, _ consumer.Call, m *semel.Message) error { made.countCall(m); return nil }, keyedConfig(g))
		if counts.Applied != 2 || counts.DeadLettered != 1 || g.lies(t)["odd"] != 1 || made.count("odd") != 0 {
			t.Errorf("%+v, %v", counts, g.lies(t))
		}
	})
	bubble(t, "case_6_a_wait_longer_than_hold_ends_as_retry_says", func(t *testing.T) {
		keys, g := memstore.NewKeys(), bury(t, message("a", ""))
		counts := runsKeyed(t, keys, keptKeys, func(context.Context, consumer.Call, *semel.Message) error {
			return semel.RetryAfter(errTest, time.Hour)
		}, keyedConfig(g))
		if counts.DeadLettered != 1 || g.lies(t)["a"] != 1 {
			t.Errorf("%+v, %v", counts, g.lies(t))
		}
	})
}

// odd is a key store in which another program has replaced the value of a key.
type odd struct{ *memstore.Keys }

var errOdd = errors.New("another program has a key of this name")

func (o *odd) ClaimKey(ctx context.Context, c keystore.Claim) (keystore.Answer, error) {
	if c.Key.ID == "odd" {
		return keystore.Answer{}, errOdd
	}
	return o.Keys.ClaimKey(ctx, c)
}

func (o *odd) Classify(err error) store.Class {
	if errors.Is(err, errOdd) {
		return store.ClassPermanent
	}
	return o.Keys.Classify(err)
}

// database is a key store that also has an inbox and markers.
type database struct {
	keystore.Store
	store.Leases
	store.Inbox
	admin.Controls
	store.Reaper
	admin.Derivations
	singleWriter
	admin.SchemaChecker
}

func TestAConsumerOfKeysTouchesNothingElseOfItsStore(t *testing.T) {
	bubble(t, "a_database_that_keeps_keys_is_asked_for_its_keys_alone", func(t *testing.T) {
		counts := runsKeyed(t, database{Store: memstore.NewKeys()}, keptKeys, func(context.Context, consumer.Call, *semel.Message) error { return nil }, keyedConfigOf(newListSource(numbered("m", 3)...)))
		if counts.Applied != 3 || counts.Inbox.Claimed != 0 {
			t.Errorf("%+v", counts)
		}
	})
}

func TestKeyedConsumersAreRefused(t *testing.T) {
	for want, spoil := range map[string]func(c *consumer.Config, p *consumer.KeyPolicy){
		"set Retry.OnExhausted to ActionHalt": func(c *consumer.Config, _ *consumer.KeyPolicy) { c.Retry.OnExhausted = consumer.ActionPark },
		"set OnConflict to ActionHalt":        func(c *consumer.Config, _ *consumer.KeyPolicy) { c.OnConflict = consumer.ActionPark },
		"set OnBadIdentity to ActionHalt":     func(c *consumer.Config, _ *consumer.KeyPolicy) { c.OnBadIdentity = consumer.ActionPark },
		"set OnFiltered to OnFilteredSkip": func(c *consumer.Config, _ *consumer.KeyPolicy) {
			c.Filter.Types, c.OnFiltered = []string{"paid"}, consumer.OnFilteredPark
		},
		"must be marker":              func(c *consumer.Config, _ *consumer.KeyPolicy) { c.Strategy = consumer.StrategyInbox },
		"KeyPolicy.Keep: is 0s":       func(_ *consumer.Config, p *consumer.KeyPolicy) { p.Keep = 0 },
		"J4 volatile":                 func(_ *consumer.Config, p *consumer.KeyPolicy) { p.AllowVolatile = "" },
		"longer than MaxInMemoryWait": func(c *consumer.Config, _ *consumer.KeyPolicy) { c.Retry.MaxDelay = time.Hour },
	} {
		t.Run(want, func(t *testing.T) {
			c, p := keyedConfig(nil), keptKeys
			spoil(&c, &p)
			_, err := consumer.NewKeyed(memstore.NewKeys(), p, func(context.Context, consumer.Call, *semel.Message) error { return nil }, c)
			if err == nil || !strings.Contains(err.Error(), strings.TrimPrefix(want, "J4 ")) {
				t.Errorf("it says %v", err)
			}
		})
	}
	bubble(t, "H1_keys_that_go_before_a_copy_can_come_are_refused", func(t *testing.T) {
		p := keptKeys
		p.Keep, p.Delay = time.Hour, 2*time.Hour
		c := mustNewKeyed(t, memstore.NewKeys(), p, func(context.Context, consumer.Call, *semel.Message) error { return nil }, keyedConfigOf(newListSource()))
		if err := c.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "a copy can come") {
			t.Errorf("it says %v", err)
		}
	})
	if _, err := mustNewKeyed(t, memstore.NewKeys(), keptKeys, func(context.Context, consumer.Call, *semel.Message) error { return io.EOF }, keyedConfig(nil)).Process(t.Context(), message("a", "")); !errors.Is(err, semel.ErrUnsupported) {
		t.Errorf("Process says %v", err)
	}
}

// singleWriter is a store that allows a single writer.
type singleWriter struct{}

func (singleWriter) Limits() store.Limits { return store.Limits{SingleWriter: true, Batch: 1} }
