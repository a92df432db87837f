package kafka

import (
	"sync"
	"testing"
	"time"

	"github.com/semel-go/semel/store"
)

// lastTold keeps the last state of partition 0 that Observe was told.
type lastTold struct {
	mu   sync.Mutex
	last LaneState // guarded by mu
}

func (l *lastTold) observe(all []LaneState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range all {
		if s.Partition == 0 {
			l.last = s
		}
	}
}

// behind is how many of its records are not settled.
func (l *lastTold) behind() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last.End - l.last.Committed
}

// TestTheLagOfAConsumerThatTakesNothingGrows: nothing is polled then, so that what the
// fetches of records tell of the logs' ends stays what it was.
func TestTheLagOfAConsumerThatTakesNothingGrows(t *testing.T) {
	grows := func(w *world, told *lastTold, to int64) {
		w.t.Helper()
		w.publish(0, numbered("later", int(to)-29, int(to))...)
		w.until(5*time.Second, "the lag has grown", func() bool { return told.behind() == to })
	}
	bubble(t, "I0_while_operators_have_it_paused", func(t *testing.T) {
		w, told := newWorld(t, 1), &lastTold{}
		w.start(count, func(c *Config) { c.Observe = told.observe }, nil)
		w.publish(0, "first")
		w.settles(time.Minute)
		if err := w.store.Pause(t.Context(), "billing", true, store.Act{Who: "dana", Why: "a release"}); err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		grows(w, told, 30)
		pass(10 * time.Minute)
		grows(w, told, 60)
		if n := w.effect("later0001"); n != 0 {
			t.Errorf("it was not paused: %d effects", n)
		}
		if err := w.store.Pause(t.Context(), "billing", false, store.Act{Who: "dana", Why: "it is out"}); err != nil {
			t.Fatal(err)
		}
		w.until(time.Minute, "nothing is behind", func() bool { return told.behind() == 0 })
	})
	bubble(t, "I0_while_the_store_is_down", func(t *testing.T) {
		w, told := newWorld(t, 1), &lastTold{}
		p := w.start(count, func(c *Config) { c.Observe = told.observe }, nil)
		w.publish(0, "first")
		w.settles(time.Minute)
		p.dead.Store(true)
		grows(w, told, 30)
		pass(10 * time.Minute)
		grows(w, told, 60)
		p.dead.Store(false)
		w.until(10*time.Minute, "nothing is behind", func() bool { return told.behind() == 0 })
	})
}
