package consumer_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/faults"
	"github.com/semel-go/semel/internal/reasonname"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// feed is a source with one lane that delivers each message when the test sends it.
type feed struct {
	*listSource
	wake chan struct{}

	mutex sync.Mutex
	queue []source.Delivery // guarded by mutex
	given bool              // guarded by mutex
}

func newFeed() *feed { return &feed{listSource: newListSource(), wake: make(chan struct{}, 1)} }

// send delivers a message that was written at the time at.
func (f *feed) send(id string, at time.Time) {
	m := message(id, `{}`)
	if !at.IsZero() {
		m.Origin.Written = uint32(at.Unix())
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.queue = append(f.queue, source.Delivery{Message: m, Lane: source.Lane{ID: "a", Epoch: 1}, Before: source.Unknown, Handle: id})
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

func (f *feed) Fetch(ctx context.Context, most source.Bound) ([]source.Delivery, error) {
	f.mutex.Lock()
	if !f.given {
		f.given = true
		f.observer.Given(source.Lane{ID: "a", Epoch: 1})
	}
	empty := len(f.queue) == 0
	f.mutex.Unlock()
	if empty {
		select {
		case <-f.wake:
		case <-ctx.Done():
		}
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	n := min(most.Messages, len(f.queue))
	taken := f.queue[:n]
	f.queue = f.queue[n:]
	return taken, nil
}

// broker is a feed that reports the progress of its lanes, and how long it can repeat messages (its horizon).
type broker struct {
	*feed
	mutex   sync.Mutex
	lanes   []source.LaneAge
	known   bool
	horizon source.Horizon
	err     error
}

func newBroker() *broker {
	return &broker{feed: newFeed(), lanes: []source.LaneAge{{Lane: "a"}}, known: true}
}

func (b *broker) Info() source.Info { return source.Info{Ages: b.ages, Horizon: b.tellHorizon} }

func (b *broker) ages() ([]source.LaneAge, bool) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.lanes, b.known
}

func (b *broker) tellHorizon(context.Context) (source.Horizon, error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.horizon, b.err
}

func (b *broker) set(do func()) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	do()
}

// writtenNow returns a message that was written now.
func writtenNow(id string) *semel.Message {
	m := message(id, `{}`)
	m.Origin.Written = uint32(time.Now().Unix())
	return m
}

// retentionConfig returns a configuration that keeps markers for an hour.
func retentionConfig(src source.Source) consumer.Config {
	c := config(src)
	c.Retention.Keep = time.Hour
	return c
}

func TestRetentionBesideARun(t *testing.T) {
	bubble(t, "H3_H4_trap_14_what_is_past_its_retention_goes_and_its_copies_are_parked", func(t *testing.T) {
		st, src := memstore.New(), newBroker()
		c := mustNew(t, st, add, retentionConfig(src))
		run := start(t, c)
		first := time.Now()
		src.send("1", first)
		pass(30 * time.Minute)
		src.send("2", time.Now())
		pass(40 * time.Minute)
		src.send("1", first)                     // duplicate of a message whose marker was removed
		src.send("2", first.Add(30*time.Minute)) // duplicate of a message whose marker is kept
		src.send("late", first.Add(-time.Hour))  // older than all markers that are kept
		src.send("3", time.Now())                // a new message
		src.send("none", time.Time{})            // a message without a time
		pass(time.Second)
		counts := c.Counts()
		if effect(t, st, "1") != "1" || effect(t, st, "2") != "1" || effect(t, st, "3") != "1" || effect(t, st, "late") != "" {
			t.Errorf("effects %s, %s, %s, %s", effect(t, st, "1"), effect(t, st, "2"), effect(t, st, "3"), effect(t, st, "late"))
		}
		if counts.Applied != 3 || counts.Duplicates != 1 || counts.Parked != 3 {
			t.Errorf("%+v", counts)
		}
		rows, err := st.Rows(t.Context(), store.RowFilter{Reason: reasonname.Expired})
		if err != nil || len(rows) != 3 || !strings.Contains(rows[0].LastError, "older than what is kept") {
			t.Errorf("%d rows, %v", len(rows), err)
		}
		addsUp(t, counts)
		run.stop()
		if err := run.wait(); err != nil {
			t.Error(err)
		}
	})
	bubble(t, "trap_T63_an_outage_that_is_longer_than_the_retention_loses_no_protection", func(t *testing.T) {
		st, src := memstore.New(), newBroker()
		first := time.Now()
		run := start(t, mustNew(t, st, add, retentionConfig(src)))
		for _, id := range []string{"1", "2", "3"} {
			src.send(id, first)
		}
		pass(5 * time.Minute)
		run.stop()
		if err := run.wait(); err != nil {
			t.Fatal(err)
		}
		pass(5 * time.Hour) // no consumer is running in this time
		again := newBroker()
		again.lanes = []source.LaneAge{{Lane: "a", Oldest: first.Add(4 * time.Minute)}} // the oldest unread message
		run = start(t, mustNew(t, st, add, retentionConfig(again)))
		pass(10 * time.Minute)
		again.send("1", first.Add(4*time.Minute)) // duplicate that was sent before the outage
		pass(time.Minute)
		if effect(t, st, "1") != "1" || outcome(t, st, "2").Kind != store.Seen {
			t.Errorf("the effect is %q, and the other marker %v", effect(t, st, "1"), outcome(t, st, "2"))
		}
		again.set(func() { again.lanes[0].Oldest = time.Time{} }) // now all messages were read
		pass(3 * time.Minute)
		if v := outcome(t, st, "2"); v.Kind != store.Fresh {
			t.Errorf("hours later the marker is still there: %v", v)
		}
		run.stop()
		if err := run.wait(); err != nil {
			t.Error(err)
		}
	})
	bubble(t, "H2_what_is_not_known_of_a_lane_is_no_progress", func(t *testing.T) {
		st, src := memstore.New(), newBroker()
		src.known = false // a lane was assigned and has delivered no message yet
		run := start(t, mustNew(t, st, add, retentionConfig(src)))
		src.send("1", time.Now())
		pass(3 * time.Hour)
		if v := outcome(t, st, "1"); v.Kind != store.Seen {
			t.Errorf("the marker was removed: %v", v)
		}
		src.set(func() { src.known = true })
		pass(3 * time.Minute)
		if v := outcome(t, st, "1"); v.Kind != store.Fresh {
			t.Errorf("its marker stays: %v", v)
		}
		run.stop()
		if err := run.wait(); err != nil {
			t.Error(err)
		}
	})
	bubble(t, "H2_a_source_that_tells_no_ages_is_as_far_as_what_it_delivered", func(t *testing.T) {
		st, src := memstore.New(), newFeed()
		run := start(t, mustNew(t, st, add, retentionConfig(src)))
		old := time.Now().Add(-3 * time.Hour)
		for range 200 { // the backlog is read slowly
			src.send("1", old)
			pass(time.Minute)
		}
		if v := outcome(t, st, "1"); v.Kind != store.Seen {
			t.Errorf("the marker was removed while old messages arrive: %v", v)
		}
		pass(2 * time.Hour) // no more messages arrive
		if v := outcome(t, st, "1"); v.Kind != store.Fresh {
			t.Errorf("its marker stays: %v", v)
		}
		run.stop()
		if err := run.wait(); err != nil {
			t.Error(err)
		}
	})
	bubble(t, "trap_T72_the_reaper_can_be_switched_off", func(t *testing.T) {
		st, src := memstore.New(), newBroker()
		c := retentionConfig(src)
		c.Retention.Off = true
		run := start(t, mustNew(t, st, add, c))
		src.send("1", time.Now())
		pass(3 * time.Hour)
		if v := outcome(t, st, "1"); v.Kind != store.Seen {
			t.Errorf("the marker was removed: %v", v)
		}
		run.stop()
		if err := run.wait(); err != nil {
			t.Error(err)
		}
	})
	bubble(t, "H1_a_consumer_that_keeps_for_ever_again_says_so_to_every_reaper", func(t *testing.T) {
		st := memstore.New()
		var down atomic.Bool
		failing := memstore.New(memstore.Fail(func(op string) error {
			if op == "retention" && down.Load() {
				return errors.New("down")
			}
			return nil
		}))
		for _, s := range []*memstore.Store{st, failing} {
			down.Store(false)
			if err := s.Retain(t.Context(), store.Retention{Consumer: "billing", Keep: time.Hour}); err != nil {
				t.Fatal(err)
			}
			down.Store(true)
			run := start(t, mustNew(t, s, add, config(newFeed())))
			pass(10 * time.Second)
			down.Store(false)
			pass(10 * time.Minute)
			if all, err := s.Retentions(t.Context(), "billing"); err != nil || len(all) != 1 || all[0].Keep != 0 {
				t.Errorf("%+v, %v", all, err)
			}
			run.stop()
			if err := run.wait(); err != nil {
				t.Error(err)
			}
		}
	})
	bubble(t, "H2_a_run_that_ends_because_nothing_is_left_records_that", func(t *testing.T) {
		st := memstore.New()
		counts, err := consume(t, st, add, retentionConfig(newListSource(writtenNow("1"))))
		if err != nil || counts.Applied != 1 {
			t.Fatal(counts, err)
		}
		began := time.Now()
		pass(10 * time.Minute)
		if _, err = consume(t, st, add, retentionConfig(newListSource())); err != nil {
			t.Fatal(err)
		}
		if all, err := st.Retentions(t.Context(), "billing"); err != nil || all[0].Progress.Sub(began) < 10*time.Minute {
			t.Errorf("%+v, %v", all, err)
		}
	})
}

func TestTheHorizonOfARetention(t *testing.T) {
	refused := func(t *testing.T, h source.Horizon, err error, retention consumer.RetentionPolicy, want ...string) {
		t.Helper()
		src := newBroker()
		src.horizon, src.err = h, err
		c := config(src)
		c.Retention = retention
		got := mustNew(t, memstore.New(), add, c).Run(t.Context())
		for _, text := range want {
			if got == nil || !strings.Contains(got.Error(), text) {
				t.Errorf("the run returned %v, which does not contain %q", got, text)
			}
		}
	}
	bubble(t, "trap_T64_a_retention_that_is_shorter_is_refused_with_the_figures", func(t *testing.T) {
		week := source.Horizon{Late: 7 * 24 * time.Hour, Why: "topic payments: retention.ms 7d"}
		refused(t, week, nil, consumer.RetentionPolicy{Keep: 24 * time.Hour}, "Keep is 24h0m0s", "168h1m", "topic payments: retention.ms 7d", "retries")
		refused(t, week, nil, consumer.RetentionPolicy{Keep: 170 * time.Hour, Delay: 3 * time.Hour}, "delay 3h0m0s")
		refused(t, source.Horizon{Unlimited: true, Why: "topic payments is compacted"}, nil, consumer.RetentionPolicy{Keep: 1e6 * time.Hour}, "without an end", "compacted")
		refused(t, week, errors.New("no right to describe topics"), consumer.RetentionPolicy{Keep: 1e6 * time.Hour}, "no right to describe topics")
	})
	bubble(t, "H1_a_horizon_that_grows_stops_the_reaper_and_one_that_shrinks_lets_it_go_on", func(t *testing.T) {
		st, src := memstore.New(), newBroker()
		src.horizon = source.Horizon{Late: time.Minute, Why: "a topic"}
		run := start(t, mustNew(t, st, add, retentionConfig(src)))
		src.send("1", time.Now())
		pass(10 * time.Minute)
		src.set(func() { src.horizon.Late = 10 * time.Hour })
		pass(5 * time.Hour)
		if v := outcome(t, st, "1"); v.Kind != store.Seen {
			t.Errorf("the marker was removed: %v", v)
		}
		if _, err := st.Advance(t.Context(), "billing"); !errors.Is(err, semel.ErrState) || !strings.Contains(err.Error(), "10h") {
			t.Errorf("a reaper elsewhere hears %v", err)
		}
		src.set(func() { src.horizon = source.Horizon{Unlimited: true, Why: "a topic"} })
		pass(2 * time.Hour)
		if v := outcome(t, st, "1"); v.Kind != store.Seen {
			t.Errorf("the marker was removed: %v", v)
		}
		src.set(func() { src.horizon = source.Horizon{Late: time.Minute} })
		pass(2 * time.Hour)
		if v := outcome(t, st, "1"); v.Kind != store.Fresh {
			t.Errorf("its marker stays: %v", v)
		}
		run.stop()
		if err := run.wait(); err != nil {
			t.Error(err)
		}
	})
}

func TestAReaperThatDies(t *testing.T) {
	for _, point := range []faults.Point{faults.BeforeAdvance, faults.BeforeReap, faults.AfterReap} {
		bubble(t, "L1_"+string(point)+"_loses_no_protection", func(t *testing.T) {
			store, source := memstore.New(), newBroker()
			first := time.Now()
			var died atomic.Bool
			thaw := make(chan struct{})
			run := start(t, mustNew(t, store, add, retentionConfig(source), faults.Plan{At: func(p faults.Point, _ int) {
				if p == point && time.Since(first) > 2*time.Hour && died.CompareAndSwap(false, true) {
					<-thaw // as in a process that is frozen at this point
				}
			}}))
			source.send("1", first)
			pass(3 * time.Hour)
			if !died.Load() {
				t.Fatal("the reaper never reached the point")
			}
			again := newBroker()
			other := start(t, mustNew(t, store, add, retentionConfig(again)))
			again.send("1", first)
			pass(time.Hour)
			if effect(t, store, "1") != "1" {
				t.Errorf("the effect happened %s times", effect(t, store, "1"))
			}
			close(thaw)
			again.send("1", first)
			pass(time.Hour)
			if effect(t, store, "1") != "1" {
				t.Errorf("after the other process continued, the effect happened %s times", effect(t, store, "1"))
			}
			other.stop()
			run.stop()
			if err := other.wait(); err != nil {
				t.Error(err)
			}
		})
	}
}
