package kafka

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestCommitsThatTheBrokerCarriesOutLate(t *testing.T) {
	bubble(t, "trap_27_a_commit_that_timed_out_and_is_carried_out_behind_a_later_one_is_made_good", func(t *testing.T) {
		w := newWorld(t, 1)
		var n atomic.Int32
		w.cluster.ControlKey(int16(kmsg.OffsetCommit), func(kmsg.Request) (kmsg.Response, error, bool) {
			w.cluster.KeepControl()
			if n.Add(1) == 1 {
				w.cluster.SleepControl(func() { pass(40 * time.Second) })
			}
			return nil, nil, false
		})
		w.publish(0, numbered("m", 1, 5)...)
		p := w.start(count, nil, func(c *settings) { c.Batch.MaxSize = 5 })
		w.until(time.Minute, "it is applied", func() bool { return w.effect("m0005") == 1 })
		w.publish(0, numbered("m", 6, 100)...)
		w.until(time.Minute, "it has gone back", func() bool { return w.committed(0) == 5 })
		w.settles(10 * time.Second)
		pass(5 * time.Minute)
		calm := n.Load()
		pass(5 * time.Minute)
		if n.Load() != calm {
			t.Errorf("%d commits were sent when nothing was to be said any more", n.Load()-calm)
		}
		w.once(numbered("m", 1, 100)...)
		if c := p.consumer.Counts(); c.Duplicates != 0 {
			t.Errorf("%+v", c)
		}
	})
}
