package consumer_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/memstore"
)

// deployment is a handler that fails permanently until a given time. For messages whose id begins with "bad", the
// handler always fails. Each call of the handler takes some time.
type deployment struct {
	mended time.Time
	takes  time.Duration
}

func (d deployment) handle(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
	if d.takes > 0 {
		pass(d.takes)
	}
	if time.Now().Before(d.mended) || strings.HasPrefix(m.Identity.ID, "bad") {
		return semel.Permanent(errTest)
	}
	return add(ctx, tx, m)
}

func TestTheCircuitBreaker(t *testing.T) {
	broken := func(t *testing.T, d deployment, messages []*semel.Message, set func(*consumer.Config)) (*consumer.Consumer[*memstore.Tx], *log, *witness, *listSource) {
		said, seen, source := &log{}, &witness{}, newListSource(messages...)
		source.endless = true
		c := config(source)
		c.IdleExit, c.Logger, c.Observers = 2*time.Minute, said.logger(), []semel.Observer{seen}
		set(&c)
		return mustNew(t, memstore.New(), d.handle, c), said, seen, source
	}
	for name, set := range map[string]func(*consumer.Config){
		"by partition":  func(*consumer.Config) {},
		"without order": func(c *consumer.Config) { c.Lanes = consumer.LanesNone },
		"in the inbox":  func(c *consumer.Config) { c.Strategy, c.AckOnReceipt = consumer.StrategyInbox, true },
	} {
		bubble(t, "C19_a_bad_deployment_does_not_park_a_topic/"+name, func(t *testing.T) {
			const most = 20 - 1
			running, said, seen, _ := broken(t, deployment{mended: time.Now().Add(3 * time.Minute)}, numbered("m", 5000), set)
			run := start(t, running)
			pass(2 * time.Minute)
			ready, why := running.Ready()
			if n := parkedIn(running); ready || !strings.Contains(why, "tries in a row failed for good") || strings.Contains(why, errTest.Error()+";") || n > most {
				t.Errorf("ready %v: %s; %d are parked", ready, why, n)
			}
			if n := strings.Count(said.String(), "level=ERROR"); n < 1 || n > 3 || strings.Count(said.String(), "the circuit breaker is open") != 1 {
				t.Errorf("%d errors are logged", n)
			}
			if err := run.wait(); err != nil {
				t.Fatal(err)
			}
			counts := running.Counts()
			applied := counts.Applied + counts.Inbox.Applied
			if n := parkedIn(running); n > most || applied != 5000-n || len(seen.eventsOf(semel.EventReady)) == 0 || strings.Count(said.String(), "the circuit breaker is closed") != 1 {
				t.Errorf("%d are parked, %d applied", n, applied)
			}
		})
	}
	bubble(t, "C19_bad_messages_do_not_stop_a_consumer_that_works", func(t *testing.T) {
		running, said, _, _ := broken(t, deployment{}, lane("a", numbered("m", 1), numbered("bad", 100)), func(*consumer.Config) {})
		if err := start(t, running).wait(); err != nil || parkedIn(running) != 100 || strings.Count(said.String(), "breaker") > 0 {
			t.Errorf("%v, %d are parked", err, parkedIn(running))
		}
	})
	bubble(t, "C19_with_halt_after_they_do", func(t *testing.T) {
		running, _, _, _ := broken(t, deployment{}, lane("a", numbered("m", 1), numbered("bad", 100)), func(c *consumer.Config) { c.Retry.BreakerThreshold = 50; c.Workers = 1 })
		run := start(t, running)
		pass(time.Minute)
		// The breaker opens after 50 consecutive failures, and m0 failed before the handler had succeeded for the first
		// time.
		if ready, _ := running.Ready(); ready || parkedIn(running) != 1+49 {
			t.Errorf("ready %v, %d are parked", ready, parkedIn(running))
		}
		if err := run.wait(); err != nil || parkedIn(running) != 100 {
			t.Errorf("%v, %d are parked", err, parkedIn(running))
		}
	})
	bubble(t, "C19_bad_messages_at_the_head_of_a_partition_do_not_hold_it_for_ever", func(t *testing.T) {
		running, _, _, _ := broken(t, deployment{}, lane("a", numbered("bad", 24), numbered("m", 10)), func(*consumer.Config) {})
		began := time.Now()
		if err := start(t, running).wait(); err != nil || parkedIn(running) != 24 || running.Counts().Applied != 10 || time.Since(began) < 10*time.Minute {
			t.Errorf("%v, %+v after %v", err, running.Counts(), time.Since(began))
		}
	})
	bubble(t, "C19_those_that_fail_at_one_moment_make_the_wait_no_longer", func(t *testing.T) {
		bad := deployment{time.Now().Add(500 * time.Millisecond), 100 * time.Millisecond}
		running, said, _, _ := broken(t, bad, numbered("m", 100), func(c *consumer.Config) { c.Lanes, c.Workers, c.Batch.MaxSize = consumer.LanesNone, 40, 1 })
		run := start(t, running)
		pass(3 * time.Second)
		if ready, why := running.Ready(); !ready || strings.Count(said.String(), "the circuit breaker is closed") != 1 {
			t.Errorf("ready %v: %s", ready, why)
		}
		if err := run.wait(); err != nil || parkedIn(running) != 19 || running.Counts().Applied != 81 {
			t.Errorf("%v, %d are parked, %+v", err, parkedIn(running), running.Counts())
		}
	})
	bubble(t, "C19_one_message_is_tried_five_times_also_where_the_policy_says_one", func(t *testing.T) {
		running, _, _, _ := broken(t, deployment{mended: time.Now().Add(10 * time.Second)}, numbered("m", 100), func(c *consumer.Config) { c.Retry.MaxAttempts, c.Workers = 1, 1 })
		if err := start(t, running).wait(); err != nil || parkedIn(running) != 19 || running.Counts().Applied != 81 {
			t.Errorf("%v, %d are parked, %+v", err, parkedIn(running), running.Counts())
		}
	})
	bubble(t, "C19_never_halt_parks_them_all", func(t *testing.T) {
		running, said, _, _ := broken(t, deployment{}, numbered("bad", 100), func(c *consumer.Config) { c.Retry.DisableBreaker = true })
		if err := start(t, running).wait(); err != nil || parkedIn(running) != 100 || strings.Count(said.String(), "breaker") > 0 {
			t.Errorf("%v, %d are parked", err, parkedIn(running))
		}
	})
	t.Run("C19_halt_after_beside_never_halt_is_refused", func(t *testing.T) {
		c := config(newListSource())
		c.Retry.BreakerThreshold, c.Retry.DisableBreaker = 5, true
		if _, err := consumer.New(memstore.New(), add, c); err == nil || !strings.Contains(err.Error(), "Retry.BreakerThreshold") {
			t.Error(err)
		}
	})
}

// parkedIn returns the number of messages that a run has parked: deliveries and claimed rows.
func parkedIn(c *consumer.Consumer[*memstore.Tx]) int64 {
	counts := c.Counts()
	return counts.Parked + counts.Inbox.Parked
}

// lane returns the messages of parts in one lane, in the given order.
func lane(name string, parts ...[]*semel.Message) (all []*semel.Message) {
	for _, part := range parts {
		for _, m := range part {
			m.Topic = name
			all = append(all, m)
		}
	}
	return all
}
