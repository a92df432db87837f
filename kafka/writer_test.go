package kafka

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/memstore"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// lettersConfirmed lets the brokers confirm dead letters, or answer that too
// few replicas have them.
func (w *world) lettersConfirmed() *atomic.Bool {
	confirmed, id := new(atomic.Bool), w.cluster.TopicInfo("letters").TopicID
	w.cluster.ControlKey(int16(kmsg.Produce), func(request kmsg.Request) (kmsg.Response, error, bool) {
		w.cluster.KeepControl()
		produce := request.(*kmsg.ProduceRequest)
		if t := produce.Topics[0]; confirmed.Load() || t.TopicID != id && t.Topic != "letters" {
			return nil, nil, false
		}
		return refusedProduce(produce, kerr.NotEnoughReplicas), nil, true
	})
	return confirmed
}

// worst fails for good for one message.
func worst(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
	if m.Identity.ID == "worst" {
		return semel.Permanent(errDead)
	}
	return count(ctx, tx, m)
}

func TestDeadLettersThatNobodyConfirms(t *testing.T) {
	bubble(t, "G3_the_acks_of_other_lanes_do_not_wait_and_it_is_said", func(t *testing.T) {
		w := newWorld(t, 2, kfake.SeedTopics(1, "letters"))
		confirmed := w.lettersConfirmed()
		w.publish(0, "worst", "follower")
		p := w.start(worst, func(c *Config) { c.DeadLetters = "letters" }, func(c *settings) { c.Retry.OnExhausted = consumer.ActionDeadLetter })
		w.until(time.Minute, "the consumer says that the dead letter is not confirmed", func() bool {
			_, why := p.consumer.Ready()
			return strings.Contains(why, "the brokers have not confirmed it")
		})
		for n := range int64(10) {
			w.publish(1, numbered("other", int(n), int(n))...)
			w.until(10*time.Second, "the other lane is settled", func() bool { return w.committed(1) == n+1 })
		}
		if at := w.committed(0); at > 0 || w.effect("follower") > 0 {
			t.Errorf("the dead letter is not confirmed, its lane is committed up to %d, and its follower has %d effects", at, w.effect("follower"))
		}
		confirmed.Store(true)
		w.settles(time.Minute)
		w.once(append(numbered("other", 0, 9), "follower")...)
		if ready, why := p.consumer.Ready(); !ready {
			t.Errorf("all is settled, and it is not ready: %s", why)
		}
		if n := w.cluster.PartitionInfo("letters", 0).HighWatermark; n != 1 {
			t.Errorf("there are %d dead letters", n)
		}
	})
}
