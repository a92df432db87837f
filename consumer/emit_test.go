package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// mailing is a store with two consumers. The first consumer writes an intent for each message. The second consumer
// sends the intents; the field sent contains them.
type mailing struct {
	t     *testing.T
	store *memstore.Store
	sent  []*semel.Message
}

func newMailing(t *testing.T, options ...memstore.Option) *mailing {
	return &mailing{t: t, store: memstore.New(options...)}
}

// handle increments a counter and writes an intent.
func (m *mailing) handle(ctx context.Context, tx *memstore.Tx, message *semel.Message) error {
	if err := intentsOf(m.t, m.store).Write(ctx, tx, message, mail(message)); err != nil {
		return err
	}
	return add(ctx, tx, message)
}

// comes runs the first consumer with ReEmitIntents and a source that delivers the given messages.
func (m *mailing) comes(change func(*consumer.Config), messages ...*semel.Message) semel.Counts {
	m.t.Helper()
	c := config(newListSource(messages...))
	c.ReEmitIntents = true
	if change != nil {
		change(&c)
	}
	counts, err := consume(m.t, m.store, m.handle, c)
	if err != nil {
		m.t.Fatal(err)
	}
	return counts
}

// sends runs the second consumer for due intents and checks the number of its calls.
func (m *mailing) sends(want int, change func(*consumer.Config)) semel.Counts {
	m.t.Helper()
	before := len(m.sent)
	running := sender(m.t, m.store, "mailer", &m.sent, change)
	if err := running.Work(m.t.Context()); err != nil {
		m.t.Fatal(err)
	}
	if got := len(m.sent) - before; got != want {
		m.t.Errorf("%d intents were sent, want %d", got, want)
	}
	return running.Counts()
}

func skips(c *consumer.Config) { c.ReEmitIntents = false }

// copies returns n copies of message "m1".
func copies(n int) (all []*semel.Message) {
	for range n {
		all = append(all, numbered("m", 2)[1])
	}
	return all
}

// revisions returns the revisions of all rows. A changed revision shows that a row was written.
func revisions(t *testing.T, store *memstore.Store) (all []int64) {
	t.Helper()
	for _, r := range rows(t, store) {
		all = append(all, r.Revision)
	}
	return all
}

func TestADuplicateHasIntentsSentAgain(t *testing.T) {
	bubble(t, "C12_however_many_come_each_once_a_minute_under_its_key", func(t *testing.T) {
		m := newMailing(t)
		m.comes(nil, numbered("m", 3)...)
		m.sends(3, nil)
		for range 2 {
			pass(2 * admin.EmitInterval)
			if counts := m.comes(nil, copies(1000)...); counts.Duplicates != 1000 || counts.ReEmitted != 1 || counts.NotReEmitted != 0 {
				t.Errorf("%+v", counts)
			}
			m.sends(1, nil)
			if counts := m.comes(nil, copies(10)...); counts.ReEmitted != 0 {
				t.Errorf("%+v", counts)
			}
			m.sends(0, nil)
		}
		first, last := m.sent[1], m.sent[4]
		if first.Identity != last.Identity || first.IntentKey("send") != last.IntentKey("send") || string(first.Body) != string(last.Body) || last.Attempt != 1 {
			t.Errorf("first %+v was sent, and then %+v", first, last)
		}
		if effect(t, m.store, "m1") != "1" {
			t.Errorf("m1 took effect %s times", effect(t, m.store, "m1"))
		}
	})
	bubble(t, "C12_only_where_the_policy_says_so", func(t *testing.T) {
		m := newMailing(t)
		m.comes(skips, numbered("m", 3)...)
		m.sends(3, nil)
		pass(2 * admin.EmitInterval)
		if counts := m.comes(skips, numbered("m", 3)...); counts.Duplicates != 3 || counts.ReEmitted != 0 {
			t.Errorf("%+v", counts)
		}
		m.sends(0, nil)
	})
	bubble(t, "C12_what_was_not_sent_stays_as_it_is", func(t *testing.T) {
		m := newMailing(t)
		m.comes(nil, numbered("m", 4)...)
		all := rows(t, m.store)
		act := store.Act{Verb: "test", Who: "me", Why: "a test"}
		if err := errors.Join(append(m.store.Suppress(t.Context(), act, all[0].Seen()), m.store.Discard(t.Context(), act, all[1].Seen())...)...); err != nil {
			t.Fatal(err)
		}
		running := mustNewLeased(t, m.store, func(_ context.Context, _ consumer.Call, sent *semel.Message) error {
			return semel.Permanent(errors.New("no such address"))
		}, senderConfig())
		if err := running.Work(t.Context(), all[2].Number); err != nil {
			t.Fatal(err)
		}
		before := fmt.Sprint(states(t, m.store))
		pass(2 * admin.EmitInterval)
		if counts := m.comes(nil, numbered("m", 4)...); counts.ReEmitted+counts.NotReEmitted != 0 || before != fmt.Sprint(states(t, m.store)) {
			t.Errorf("%+v: %s, and now %v", counts, before, states(t, m.store))
		}
		if before != "[PARKED DISCARDED PARKED RECEIVED]" {
			t.Error(before)
		}
	})
	bubble(t, "C12_that_were_written_with_an_answer", func(t *testing.T) {
		m := newMailing(t)
		answered := func() semel.Counts {
			c := config(newListSource(numbered("m", 2)...))
			c.Strategy, c.AckOnReceipt, c.IdleExit, c.ReEmitIntents = consumer.StrategyInbox, true, time.Second, true
			running, err := consumer.NewCalling(m.store, func(context.Context, *semel.Message) (string, error) { return "yes", nil },
				func(ctx context.Context, tx *memstore.Tx, _ string, message *semel.Message) error {
					return m.handle(ctx, tx, message)
				}, c, firstSeed)
			if err == nil {
				err = running.Run(t.Context())
			}
			if err != nil {
				t.Fatal(err)
			}
			return running.Counts()
		}
		answered()
		m.sends(2, nil)
		pass(2 * admin.EmitInterval)
		if counts := answered(); counts.Duplicates != 2 || counts.ReEmitted != 2 {
			t.Errorf("%+v", counts)
		}
		m.sends(2, nil)
	})
	bubble(t, "C12_what_fails_when_it_is_sent_again_is_tried_again_and_parked_as_any", func(t *testing.T) {
		m, calls := newMailing(t), 0
		m.comes(nil, numbered("m", 1)...)
		m.sends(1, nil)
		pass(2 * admin.EmitInterval)
		m.comes(nil, numbered("m", 1)...)
		c := senderConfig()
		c.Retry.MaxAttempts, c.IdleExit = 3, time.Hour
		if counts := runsLeased(t, m.store, func(context.Context, consumer.Call, *semel.Message) error {
			calls++
			return semel.Retry(errors.New("not now"))
		}, c); calls != 3 || counts.Inbox.Parked != 1 {
			t.Errorf("%d calls, %+v", calls, counts)
		}
		if counts := m.comes(nil, numbered("m", 1)...); counts.ReEmitted != 0 {
			t.Errorf("a parked intent was sent again: %+v", counts)
		}
	})
	bubble(t, "C12_of_a_message_that_was_processed_under_a_former_identity", func(t *testing.T) {
		m := newMailing(t)
		event := func(change func(*consumer.Config)) semel.Counts {
			return m.comes(func(c *consumer.Config) {
				c.Identity = byOrder
				if change != nil {
					change(c)
				}
			}, newOrderEvent("1", "a", "one"))
		}
		event(nil)
		m.sends(1, nil)
		pass(2 * admin.EmitInterval)
		if counts := event(func(c *consumer.Config) {
			c.Identity, c.PreviousIdentity = byEvent, &consumer.PreviousIdentity{Identity: byOrder}
		}); counts.Duplicates != 1 || counts.ReEmitted != 1 {
			t.Errorf("%+v", counts)
		}
		m.sends(1, nil)
	})
	bubble(t, "C12_before_it_is_settled_and_again_where_that_failed", func(t *testing.T) {
		var lock sync.Mutex // guards tries
		tries := map[string]int{}
		m := newMailing(t, memstore.Fail(func(op string) error {
			lock.Lock()
			defer lock.Unlock()
			if tries[op]++; tries[op] <= 2 && strings.HasPrefix(op, "emit") {
				return errors.New("the store is down")
			}
			return nil
		}))
		m.comes(skips, numbered("m", 2)...)
		m.sends(2, nil)
		pass(2 * admin.EmitInterval)
		src := newListSource(numbered("m", 2)...)
		counts := m.comes(func(c *consumer.Config) { c.Source = src })
		if counts.Duplicates != 2 || src.settled["0"] != 1 || src.settled["1"] != 1 || tries["emit-before"] != 5 {
			t.Errorf("%+v, settled %v, %v", counts, src.settled, tries)
		}
		m.sends(2, nil)
	})
	bubble(t, "C12_with_a_loop_of_ones_own", func(t *testing.T) {
		m := newMailing(t)
		c := config(nil)
		c.ReEmitIntents = true
		running := mustNew(t, m.store, m.handle, c)
		ask(t.Context(), running, numbered("m", 1)...)
		m.sends(1, nil)
		pass(2 * admin.EmitInterval)
		if a := ask(t.Context(), running, numbered("m", 1)...)[0]; a.err != nil || a.Ending != source.EndDuplicate || running.Counts().ReEmitted != 1 {
			t.Errorf("%+v, %+v", a, running.Counts())
		}
		m.sends(1, nil)
		closed(t, running)
	})
}

func senderConfig() consumer.Config {
	c := config(nil)
	c.Name, c.Strategy, c.Identity = "mailer", consumer.StrategyInbox, identity.CloudEvents()
	return c
}

func states(t *testing.T, st *memstore.Store) (all []store.RowState) {
	for _, r := range rows(t, st) {
		all = append(all, r.State)
	}
	return all
}

func TestIntentsThatAreNotSentAgain(t *testing.T) {
	anHour := func(c *consumer.Config) { c.Provider.Window = time.Hour }
	bubble(t, "C12_E3_what_the_other_side_may_have_forgotten_is_left_and_counted", func(t *testing.T) {
		m := newMailing(t)
		m.comes(nil, numbered("m", 2)...)
		m.sends(2, anHour)
		pass(time.Hour)
		before := fmt.Sprint(revisions(t, m.store))
		counts := m.comes(func(c *consumer.Config) { c.SenderWindows = map[string]time.Duration{"mailer": time.Hour} }, numbered("m", 2)...)
		if counts.ReEmitted != 0 || counts.NotReEmitted != 2 || before != fmt.Sprint(revisions(t, m.store)) {
			t.Errorf("%+v: %s, and now %v", counts, before, revisions(t, m.store))
		}
	})
	bubble(t, "C12_E3_a_sender_that_comes_too_late_ends_it_without_a_call", func(t *testing.T) {
		m := newMailing(t)
		m.comes(nil, numbered("m", 2)...)
		m.sends(2, anHour)
		pass(50 * time.Minute)
		if counts := m.comes(nil, numbered("m", 2)...); counts.ReEmitted != 2 {
			t.Errorf("%+v", counts)
		}
		pass(15 * time.Minute) // no sender was running during this time
		if counts := m.sends(0, anHour); counts.NotReEmitted != 2 || counts.Inbox.Applied != 2 {
			t.Errorf("%+v", counts)
		}
		for _, r := range rows(t, m.store) {
			if r.State != store.StateCompleted || r.UnknownOutcome() {
				t.Errorf("%+v", r)
			}
		}
	})
	bubble(t, "C12_law_1_what_is_done_in_a_transaction", func(t *testing.T) {
		m := newMailing(t)
		m.comes(nil, numbered("m", 1)...)
		effects := 0
		plain := mustNew(t, m.store, func(_ context.Context, tx *memstore.Tx, _ *semel.Message) error {
			effects++
			return nil
		}, senderConfig())
		if err := plain.Work(t.Context()); err != nil || effects != 1 {
			t.Fatal(err, effects)
		}
		pass(2 * admin.EmitInterval)
		if counts := m.comes(nil, numbered("m", 1)...); counts.ReEmitted != 0 {
			t.Errorf("%+v", counts)
		}
	})
	bubble(t, "C12_law_1_what_an_answer_had_applied_in_a_transaction", func(t *testing.T) {
		m, applied := newMailing(t), 0
		m.comes(nil, numbered("m", 2)...)
		answers := func() error {
			running, err := consumer.NewCalling(m.store, func(context.Context, *semel.Message) (int, error) { return 1, nil },
				func(context.Context, *memstore.Tx, int, *semel.Message) error { applied++; return nil }, senderConfig(), firstSeed)
			if err != nil {
				t.Fatal(err)
			}
			return running.Work(t.Context())
		}
		if err := answers(); err != nil || applied != 2 {
			t.Fatal(err, applied)
		}
		pass(2 * admin.EmitInterval)
		if counts := m.comes(nil, numbered("m", 2)...); counts.ReEmitted != 0 {
			t.Errorf("%+v", counts)
		}
		// The sender does not apply an intent that was sent by a sender of another kind.
		m.comes(nil, numbered("n", 1)...)
		m.sends(1, nil)
		pass(2 * admin.EmitInterval)
		if counts := m.comes(nil, numbered("n", 1)...); counts.ReEmitted != 1 {
			t.Errorf("%+v", counts)
		}
		if err := answers(); err != nil || applied != 2 {
			t.Error(err, applied)
		}
	})
}

func TestSendingAgainThatCannotBe(t *testing.T) {
	refused := func(t *testing.T, says string, err error) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v; want %q", err, says)
		}
	}
	t.Run("C12_is_refused_with_the_reason", func(t *testing.T) {
		c := config(nil)
		c.ReEmitIntents = true
		natural := c
		natural.Strategy, natural.NaturalReason = consumer.StrategyNatural, "a test"
		_, err := consumer.New(memstore.New(), add, natural)
		refused(t, "no marker tells which messages are duplicates", err)
		_, err = consumer.New(struct{ store.TxStore[*memstore.Tx] }{memstore.New()}, add, c)
		refused(t, "keeps no intents that it could have sent again", err)
		if !errors.Is(err, semel.ErrUnsupported) {
			t.Error(err)
		}
		leased := senderConfig()
		leased.ReEmitIntents = true
		_, err = consumer.NewLeased(memstore.New(), func(context.Context, consumer.Call, *semel.Message) error { return nil }, leased)
		refused(t, "with NewLeased a handler has no transaction", err)
		skipping := config(nil)
		skipping.SenderWindows = map[string]time.Duration{"mailer": time.Hour}
		_, err = consumer.New(memstore.New(), add, skipping)
		refused(t, "ReEmitIntents is not set", err)
		c.SenderWindows = map[string]time.Duration{"mailer": -2}
		_, err = consumer.New(memstore.New(), add, c)
		refused(t, `of "mailer"`, err)
	})
}
