package consumer_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/internal/eventkind"
	"github.com/semel-go/semel/memstore"
)

var errAway = errors.New("the called system is down")

// partner is a system that a handler calls. The system is down until a given time.
type partner struct {
	back time.Time

	mutex sync.Mutex
	// calls are the times of the first call for each message, and retries the times of later calls. failed
	// contains the messages whose last call failed.
	calls, retries []time.Time
	failed         map[string]bool
}

func (p *partner) handle(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
	p.mutex.Lock()
	if p.failed[m.Identity.ID] {
		p.retries = append(p.retries, time.Now())
	} else {
		p.calls = append(p.calls, time.Now())
	}
	away := time.Now().Before(p.back)
	p.failed[m.Identity.ID] = away
	p.mutex.Unlock()
	pass(10 * time.Millisecond)
	if away {
		return errAway
	}
	return add(ctx, tx, m)
}

// before returns how many of the given times are before the time at.
func before(at time.Time, all []time.Time) (n int) {
	for _, c := range all {
		if c.Before(at) {
			n++
		}
	}
	return n
}

func TestTheSystemThatAHandlerCallsIsDown(t *testing.T) {
	away := func(t *testing.T, set func(*consumer.Config)) (*partner, *witness, semel.Counts, time.Time) {
		store, source, seen := memstore.New(), newListSource(numbered("m", 3000)...), &witness{}
		source.endless = true
		c := config(source)
		c.Strategy, c.Lanes, c.Observers = consumer.StrategyInbox, consumer.LanesNone, []semel.Observer{seen}
		c.Retry.MaxDelay, c.IdleExit, c.Batch.MaxSize = time.Minute, 5*time.Minute, 10
		c.Retry.MaxAttempts = 100 // a message may get more than ten of the attempts of the first minute
		set(&c)
		began := time.Now()
		p := &partner{back: began.Add(time.Minute), failed: map[string]bool{}}
		counts, err := consume(t, store, p.handle, c)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range numbered("m", 3000) {
			if id := string(m.Headers[0].Value); effect(t, store, id) != "1" {
				t.Fatalf("%s has the effect %s", id, effect(t, store, id))
			}
		}
		return p, seen, counts, began
	}
	bubble(t, "C6_one_message_is_tried_at_a_time_and_ten_a_second_until_one_succeeds", func(t *testing.T) {
		p, seen, counts, began := away(t, func(*consumer.Config) {})
		meanwhile := before(p.back, p.calls) + before(p.back, p.retries)
		if meanwhile < 100 || meanwhile > consumer.Defaults().Retry.SerialAfter+consumer.Defaults().Workers+60*consumer.Defaults().Retry.Budget.PerSecond {
			t.Errorf("%d tries in the minute in which all failed", meanwhile)
		}
		if n := seen.eventsOf(eventkind.Trial); len(n) != 1 || n[0].Messages < consumer.Defaults().Retry.SerialAfter || !errors.Is(n[0].Err, errAway) {
			t.Errorf("%+v", n)
		}
		if n := seen.eventsOf(eventkind.TrialEnds); len(n) != 1 {
			t.Errorf("%+v", n)
		}
		if took := time.Since(began); counts.Parked > 0 || took > 10*time.Minute {
			t.Errorf("%+v after %v", counts, took)
		}
	})
	bubble(t, "C6_what_is_received_is_settled_meanwhile", func(t *testing.T) {
		var received time.Time
		p, _, counts, began := away(t, func(c *consumer.Config) {
			c.AckOnReceipt = true
			var n int
			c.Observers = append(c.Observers, observerFunc(func(e semel.Event) {
				if e.Kind == eventkind.Committed && received.IsZero() {
					if n += e.Messages; n >= 3000 {
						received = time.Now()
					}
				}
			}))
		})
		if counts.Received != 3000 || received.Sub(began) > time.Second/2 || !received.Before(p.back) {
			t.Errorf("%d were received within %v", counts.Received, received.Sub(began))
		}
	})
	bubble(t, "C5_beyond_the_budget_a_retry_waits_and_nobody_is_charged_for_it", func(t *testing.T) {
		p, seen, counts, _ := away(t, func(c *consumer.Config) { c.Retry.SerialAfter = 1_000_000 })
		if len(p.retries) < 700 || int64(len(p.retries)) < counts.Retried {
			t.Errorf("%d retries, of which %d are counted", len(p.retries), counts.Retried)
		}
		for i, at := range p.retries {
			until := at.Add(time.Minute)
			n := before(until, p.retries) - i
			firsts := before(until, p.calls) // at the start, the budget may hold the saved retries of a minute
			if most := 2*60*consumer.Defaults().Retry.Budget.PerSecond + firsts*consumer.Defaults().Retry.Budget.Percent/100; n > most {
				t.Fatalf("%d retries within a minute, and the budget is %d", n, most)
			}
		}
		if len(seen.eventsOf(eventkind.RetriesWait)) == 0 || counts.Parked > 0 {
			t.Errorf("%+v; told %d times", counts, len(seen.eventsOf(eventkind.RetriesWait)))
		}
	})
}
