package kafka

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/source"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// failing makes the world's store fail at what is named, while it is named.
func (w *world) failing() (at *atomic.Value, asked *atomic.Int64) {
	at, asked = &atomic.Value{}, &atomic.Int64{}
	at.Store("")
	w.store = memstore.New(memstore.Fail(func(op string) error {
		if op == at.Load() {
			asked.Add(1)
			return errors.New("the connection is gone")
		}
		return nil
	}))
	return at, asked
}

func TestAnOffsetIsCommittedAfterTheStoreHasIt(t *testing.T) {
	for name, op := range map[string]string{
		"I7_while_the_store_does_not_take_it_nothing_is_committed_and_nothing_spins": "advance-before",
		"I7_an_answer_that_is_lost_is_no_answer_and_the_next_write_goes_on":          "advance-after",
	} {
		bubble(t, name, func(t *testing.T) {
			w := newWorld(t, 1)
			at, asked := w.failing()
			p := w.start(count, nil, nil)
			w.publish(0, "a")
			w.settles(time.Minute)
			at.Store(op)
			w.publish(0, "b", "c")
			pass(time.Minute)
			if got := w.committed(0); got != 1 {
				t.Errorf("the group is at %d", got)
			}
			if n := asked.Load(); n < 2 || n > 120 {
				t.Errorf("the store was asked %d times in a minute", n)
			}
			at.Store("")
			w.settles(time.Minute)
			w.once("a", "b", "c")
			if got := w.stands(0); got != 3 {
				t.Errorf("the store stands at %d", got)
			}
			if err := p.leave(); err != nil {
				t.Error(err)
			}
		})
	}
	bubble(t, "trap_T110_who_is_given_a_partition_while_the_store_is_silent_notices_with_its_first_write", func(t *testing.T) {
		w := newWorld(t, 1)
		at, _ := w.failing()
		w.publish(0, "a", "b", "c")
		owner, other := w.start(count, nil, nil), (*process)(nil)
		w.settles(time.Minute)
		other = w.start(count, nil, nil)
		pass(20 * time.Second)
		if len(other.source.lanes.all()) > 0 {
			owner, other = other, owner
		}
		w.restore(0, 1)
		at.Store("offsets")
		_ = owner.leave()
		w.publish(0, "d")
		other.refuses(t, "partition 0: the store is at 1, the group at 3")
		at.Store("")
		if w.committed(0) != 3 || w.stands(0) != 1 {
			t.Errorf("the group is at %d, the store at %d", w.committed(0), w.stands(0))
		}
	})
	bubble(t, "I7_killed_between_the_store_and_the_group_a_process_leaves_duplicates_only", func(t *testing.T) {
		w := newWorld(t, 1)
		w.publish(0, numbered("a", 1, 10)...)
		var running atomic.Pointer[process]
		w.cluster.ControlKey(int16(kmsg.OffsetCommit), func(kmsg.Request) (kmsg.Response, error, bool) {
			running.Load().kill()
			return nil, errors.New("the process is dead"), true
		})
		first := w.start(count, nil, nil)
		running.Store(first)
		w.until(time.Minute, "it commits", first.dead.Load)
		if w.stands(0) <= max(w.committed(0), 0) {
			t.Fatalf("the store stands at %d, the group is at %d", w.stands(0), w.committed(0))
		}
		second := w.start(count, nil, nil)
		w.settles(5 * time.Minute)
		w.once(numbered("a", 1, 10)...)
		if c := second.consumer.Counts(); c.Duplicates == 0 || w.stands(0) != 10 {
			t.Errorf("%+v, the store stands at %d", c, w.stands(0))
		}
	})
	bubble(t, "I7_who_comes_back_from_the_cold_lowers_no_position", func(t *testing.T) {
		w := newWorld(t, 1)
		w.publish(0, "a")
		first := w.start(count, nil, nil)
		w.settles(time.Minute)
		first.wire.freeze()
		second := w.start(count, nil, nil)
		pass(time.Minute)
		w.bury()
		w.publish(0, numbered("b", 1, 20)...)
		w.settles(5 * time.Minute)
		at := w.stands(0)
		first.wire.thaw()
		pass(time.Minute)
		if w.stands(0) < at {
			t.Errorf("the store stood at %d, and stands at %d", at, w.stands(0))
		}
		w.publish(0, "c")
		w.settles(5 * time.Minute)
		w.once(append(numbered("b", 1, 20), "a", "c")...)
		for _, p := range []*process{first, second} {
			if err := p.leave(); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestWhatCannotBeKnownOfAStore(t *testing.T) {
	bubble(t, "I7_an_offset_that_a_person_has_set_is_named_and_obeyed", func(t *testing.T) {
		w := newWorld(t, 1)
		w.publish(0, "a")
		p := w.start(count, nil, nil)
		w.settles(time.Minute)
		_ = p.leave()
		w.publish(0, "damaged", "b")
		w.commitFor(theGroup, 2)
		var log strings.Builder
		again := w.start(count, func(c *Config) { c.Logger = logTo(&log) }, nil)
		w.settles(time.Minute)
		_ = again.leave()
		w.once("a", "b")
		w.without("damaged")
		if n := strings.Count(log.String(), "store=1 at=2"); n != 1 {
			t.Errorf("it was said %d times: %s", n, log.String())
		}
		if got := w.stands(0); got != 3 {
			t.Errorf("the store stands at %d", got)
		}
	})
	bubble(t, "I7_where_no_position_was_ever_kept_it_is_said_once_that_nothing_can_be_known", func(t *testing.T) {
		w := newWorld(t, 1)
		w.publish(0, "a", "b")
		w.commitFor(theGroup, 1) // as an older release does
		var log strings.Builder
		p := w.start(count, func(c *Config) { c.Logger = logTo(&log) }, nil)
		w.settles(time.Minute)
		_ = p.leave()
		w.once("b")
		if n := strings.Count(log.String(), "cannot be known before the first commit"); n != 1 {
			t.Errorf("it was said %d times: %s", n, log.String())
		}
		if got := w.stands(0); got != 2 {
			t.Errorf("the store stands at %d", got)
		}
	})
	bubble(t, "trap_45_a_topic_that_is_created_anew_has_positions_of_its_own", func(t *testing.T) {
		w := newWorld(t, 1)
		w.publish(0, numbered("a", 1, 30)...)
		p := w.start(count, nil, nil)
		w.settles(time.Minute)
		_ = p.leave()
		former := w.position(0)
		w.anew(1)
		w.publish(0, "b")
		again := w.start(count, nil, nil)
		w.settles(time.Minute)
		w.once("b")
		if got := w.stands(0); got != 1 || w.position(0) == former {
			t.Errorf("the store stands at %d", got)
		}
		_ = again.leave()
		w.restore(0, 0)
		w.start(count, nil, nil).refuses(t, "the store is at 0, the group at 1")
	})
	bubble(t, "I7_a_group_that_is_behind_the_store_reads_again", func(t *testing.T) {
		w := newWorld(t, 1)
		w.publish(0, numbered("a", 1, 10)...)
		p := w.start(count, nil, nil)
		w.settles(time.Minute)
		_ = p.leave()
		w.commitFor(theGroup, 4)
		again := w.start(count, nil, nil)
		w.settles(time.Minute)
		w.once(numbered("a", 1, 10)...)
		if c := again.consumer.Counts(); c.Duplicates != 6 || w.stands(0) != 10 {
			t.Errorf("%+v, the store stands at %d", c, w.stands(0))
		}
		_ = again.leave()
		w.forgetGroup()
		last := w.start(count, nil, nil)
		w.settles(time.Minute)
		if c := last.consumer.Counts(); c.Duplicates != 10 {
			t.Errorf("%+v", c)
		}
	})
	bubble(t, "I7_a_store_that_keeps_no_offsets_is_no_fault", func(t *testing.T) {
		w := newWorld(t, 1)
		w.publish(0, "a")
		r := newOnly(t, w)
		wants(t, r.take(1), "order a")
		if got := w.stands(0); got != source.NoOffset {
			t.Errorf("the store stands at %d", got)
		}
	})
}

// newOnly reads the world's topic for a store that keeps positions only.
func newOnly(t *testing.T, w *world) *reader {
	r := read(t, Config{Brokers: w.cluster.ListenAddrs(), Topics: []string{theTopic}, Group: theGroup})
	r.brokers.dial = w.network.DialContext
	return r
}
