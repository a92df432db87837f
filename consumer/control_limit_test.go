package consumer_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/eventkind"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/store"
)

// limit limits the consumer "billing" to a number of messages a second.
func limit(t *testing.T, s admin.Controls, perSecond int) {
	t.Helper()
	if err := s.Limit(context.Background(), "billing", perSecond, store.Act{Verb: "limit", Who: "bo", Why: "slowly"}); err != nil {
		t.Fatal(err)
	}
}

func TestALimitedConsumer(t *testing.T) {
	for name, perSecond := range map[string]int{"I0_few_a_second": 7, "I0_many_a_second": 500} {
		bubble(t, name+"_are_taken_and_all_come_through_in_the_end", func(t *testing.T) {
			store, source := memstore.New(), newListSource(numbered("m", 12*perSecond)...)
			limit(t, store, perSecond)
			c, seen := config(source), &witness{}
			c.Observers = []semel.Observer{seen}
			running := mustNew(t, store, add, c)
			run := start(t, running)
			for second := 1; second <= 10; second++ {
				pass(time.Second)
				if n := running.Counts().Deliveries; n > int64(second*perSecond) || n < int64((second-1)*perSecond) {
					t.Errorf("%d messages in %d seconds", n, second)
				}
			}
			if err := run.wait(); err != nil || running.Counts().Applied != int64(12*perSecond) {
				t.Errorf("%+v, %v", running.Counts(), err)
			}
			if told := seen.eventsOf(eventkind.Control); len(told) != 1 || told[0].Messages != perSecond {
				t.Errorf("told %+v", told)
			}
		})
	}
	bubble(t, "I0_rows_of_the_inbox_count_too", func(t *testing.T) {
		store := memstore.New()
		c := config(nil)
		c.Strategy = consumer.StrategyInbox
		receive(t, store, c, numbered("m", 60)...)
		limit(t, store, 5)
		running := mustNew(t, store, add, c)
		ended := make(chan error, 1)
		began := time.Now()
		go func() { ended <- running.Work(t.Context()) }()
		pass(10 * time.Second)
		if n := running.Counts().Inbox.Claimed; n > 50 || n < 40 {
			t.Errorf("%d rows in 10 seconds", n)
		}
		if err := <-ended; err != nil || running.Counts().Inbox.Applied != 60 || time.Since(began) > 15*time.Second {
			t.Errorf("after %v: %+v, %v", time.Since(began), running.Counts(), err)
		}
	})
	bubble(t, "I0_it_ends_idle_and_a_stop_ends_it_at_once", func(t *testing.T) {
		store, source := memstore.New(), newListSource(numbered("m", 6)...)
		source.endless = true
		limit(t, store, 1)
		c := config(source)
		c.IdleExit = 3 * time.Second
		if n := runs(t, store, add, c); n.Applied != 6 {
			t.Errorf("%+v", n)
		}
		stopped := newListSource(numbered("n", 100)...)
		run := start(t, mustNew(t, store, add, config(stopped)))
		pass(2500 * time.Millisecond)
		began := time.Now()
		run.stop()
		if err := run.wait(); err != nil || time.Since(began) > 100*time.Millisecond {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
	bubble(t, "I0_a_limit_ends_the_fetch_under_way_and_is_lifted_again", func(t *testing.T) {
		store, source := memstore.New(), newFeed()
		running := mustNew(t, store, add, config(source))
		run := start(t, running)
		pass(time.Minute)
		limit(t, store, 10)
		pass(heard)
		ids, written := make([]string, 300), map[string]time.Time{}
		for i := range ids {
			ids[i] = strconv.Itoa(i)
			written[ids[i]] = time.Now()
		}
		source.sendAll(written, ids...) // a fetch that began before the limit would return all of them at once
		pass(time.Second)
		if n := running.Counts().Applied; n == 0 || n > 21 {
			t.Errorf("within a second %d messages were applied, want about 20", n)
		}
		if ready, why := running.Ready(); !ready || why != "limited to 10 messages a second by bo: slowly" {
			t.Errorf("ready %t: %q", ready, why)
		}
		limit(t, store, 0)
		pass(heard)
		if ready, why := running.Ready(); !ready || why != "" {
			t.Errorf("ready %t: %q", ready, why)
		}
		run.stop()
		if err := run.wait(); err != nil {
			t.Error(err)
		}
	})
}
