package kafka

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel/source"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// asked counts the fetches that ask for partition 0 at an offset.
func (w *world) asked(at int64) *atomic.Int64 {
	n := new(atomic.Int64)
	w.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Count: -1, Observe: true, TopLevel: true, When: func(request kmsg.Request) bool {
		for _, t := range request.(*kmsg.FetchRequest).Topics {
			for _, p := range t.Partitions {
				if p.Partition == 0 && p.FetchOffset == at {
					n.Add(1)
				}
			}
		}
		return false
	}})
	return n
}

// lane is the lane of a partition.
func (p *process) lane(partition int32) source.Lane {
	p.source.lanes.mu.Lock()
	defer p.source.lanes.mu.Unlock()
	return p.source.lanes.byPartition[topicPartition{theTopic, partition}].id
}

// paused fails unless these are the partitions that the client does not fetch.
func (p *process) paused(t testing.TB, when string, partitions ...int32) {
	t.Helper()
	if paused := p.source.member.current().PauseFetchPartitions(nil)[theTopic]; !slices.Equal(paused, partitions) {
		t.Errorf("%s partitions %v are paused, not %v", when, paused, partitions)
	}
}

func TestALaneWithABatchThatIsTooLarge(t *testing.T) {
	bubble(t, "trap_T91_it_stands_still_paused_and_the_others_go_on", func(t *testing.T) {
		w := newWorld(t, 2)
		bomb := w.client(kgo.ProducerBatchCompression(kgo.GzipCompression()), kgo.ProducerBatchMaxBytes(8<<20)) // a decoder of zstd may not be made in a bubble
		w.publish(0, "before")
		large := order(0, "large")
		large.Value = make([]byte, 4<<20)
		if err := bomb.ProduceSync(t.Context(), large).FirstErr(); err != nil {
			t.Fatal(err)
		}
		w.publish(0, "behind")
		asked := w.asked(1)
		text := w.logged(func(c *Config) { c.MaxRecord, c.MaxBatch = 1<<20, 2<<20 })
		p := w.processes["process 1"]
		for n := range 24 {
			id := numbered("beside", n, n)[0]
			w.publish(1, id)
			w.until(time.Second, "the other partition goes on", func() bool { return w.effect(id) == 1 })
			pass(5 * time.Second)
		}
		w.once("before")
		w.without("large", "behind")
		if at := w.committed(0); at != 1 {
			t.Errorf("the group's offset is %d", at)
		}
		if n := strings.Count(text.String(), "the batch of offsets 1 to 1 is larger than 2 MiB"); n < 2 || n > 4 {
			t.Errorf("it is told %d times within two minutes:\n%.2000s", n, text.String())
		}
		if n := asked.Load(); n < 1 || n > 3 {
			t.Errorf("it was asked for %d times", n)
		}
		p.paused(t, "while it stands", 0)
		p.source.Flow(p.lane(0), false)
		p.source.Flow(p.lane(0), true)
		p.paused(t, "after the consumer has paused and resumed it", 0)
		if _, left, err := p.source.Info().Idle(t.Context()); err != nil || len(left) != 1 || left[0].Lane != "orders/0" || !left[0].Fault || left[0].Messages != 2 {
			t.Errorf("left is %+v: %v", left, err)
		}
	})
}
