package kafka

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// hot is how many fetches are too many: so many without a pause hold virtual
// time for ever.
const hot = 3000

// refuse lets the brokers refuse to read partition 0 with an error that may
// pass. It returns how many fetches they refused.
func (w *world) refuse(err *kerr.Error) (*kfake.FaultHandle, *atomic.Int64) {
	refused := new(atomic.Int64)
	return w.cluster.Fault(kfake.Fault{
		Keys: []kmsg.Key{kmsg.Fetch}, Partitions: []int32{0}, Err: err, Count: -1,
		When: func(kmsg.Request) bool { return refused.Add(1) < hot },
	}), refused
}

func TestAPartitionThatTheBrokersRefuseBesideOneThatTheyRead(t *testing.T) {
	t.Run("I0_it_is_asked_for_with_pauses_and_the_other_goes_on", func(t *testing.T) {
		for _, err := range []*kerr.Error{kerr.CorruptMessage, kerr.KafkaStorageError, kerr.NotLeaderForPartition, kerr.LeaderNotAvailable, kerr.OffsetNotAvailable, kerr.FencedLeaderEpoch} {
			bubble(t, err.Message, func(t *testing.T) { besideRefused(t, err) })
		}
	})
}

func besideRefused(t *testing.T, err *kerr.Error) {
	w := newWorld(t, 2)
	w.publish(1, "beside")
	w.start(count, func(c *Config) { c.Start = Start{Now: true} }, nil)
	w.until(time.Minute, "the group has begun", func() bool { return w.committed(1) == 1 })
	mended, refused := w.refuse(err)
	w.publish(0, "b")
	for n := range 10 {
		id := numbered("beside", n, n)[0]
		w.publish(1, id)
		w.until(time.Second, "the other partition goes on", func() bool { return w.effect(id) == 1 })
		pass(5 * time.Second)
	}
	if n := refused.Load(); n < 10 || n > hot/2 { // a fetch counts twice
		t.Errorf("it was asked for %d times within a minute", n)
	}
	w.without("b")
	mended.Remove()
	w.settles(time.Minute)
	w.once("b")
}
