package consumer_test

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/source"
)

// freshSource creates its messages during Fetch and keeps no reference to them, so that they can be freed.
type freshSource struct {
	observer source.LaneObserver
	next     int
	total    int
	body     int
}

func (s *freshSource) Lanes(o source.LaneObserver) { s.observer = o }

func (s *freshSource) Fetch(ctx context.Context, most source.Bound) ([]source.Delivery, error) {
	lane := source.Lane{ID: "a", Epoch: 1}
	if s.next == 0 {
		s.observer.Given(lane)
	}
	if s.next == s.total {
		<-ctx.Done()
		return nil, nil
	}
	var out []source.Delivery
	for size := int64(0); s.next < s.total && len(out) < most.Messages && size < most.Bytes; size += int64(s.body) {
		m := message(fmt.Sprint(s.next), "")
		m.Body = bytes.Repeat([]byte{'x'}, s.body)
		out = append(out, source.Delivery{Message: m, Lane: lane, Before: source.Unknown})
		s.next++
	}
	return out, nil
}

func (s *freshSource) Settle(context.Context, []source.Settlement) ([]int, error) { return nil, nil }
func (*freshSource) Info() source.Info                                            { return source.Info{} }

func (s *freshSource) Flow(source.Lane, bool)      {}
func (s *freshSource) Close(context.Context) error { return nil }

// heap returns the size of the heap after a garbage collection.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return int64(s.HeapAlloc)
}

func TestMessagesThatWaitKeepTheirOwnMemoryOnly(t *testing.T) {
	for _, c := range []struct{ body, messages int }{{16 << 10, 20_000}, {100, 60_000}} {
		bubble(t, fmt.Sprintf("trap_T87_one_in_256_waits_with_bodies_of_%d_bytes", c.body), func(t *testing.T) {
			source := &freshSource{total: c.messages, body: c.body}
			conf := config(source)
			conf.Strategy, conf.NaturalReason, conf.Identity = consumer.StrategyNatural, "markers would fill the store in memory", nil
			conf.Lanes, conf.MaxInMemoryWait, conf.Drain = consumer.LanesNone, time.Hour, time.Second
			waiting := 0
			conf.Workers = 1
			consumer := mustNew(t, memstore.New(), func(_ context.Context, _ *memstore.Tx, m *semel.Message) error {
				if waiting++; waiting%256 == 0 {
					return semel.RetryAfter(errTest, time.Hour)
				}
				return nil
			}, conf)
			before := heap()
			run := start(t, consumer)
			pass(10 * time.Minute)
			synctest.Wait()
			counts := consumer.Counts()
			held := counts.Deliveries - counts.Applied
			bound := held * int64(c.body+1024)
			if grown := heap() - before; counts.Deliveries != int64(c.messages) || held < int64(c.messages)/300 || grown > 2*bound+1<<20 {
				t.Errorf("%d of %d wait and count as %d bytes; the heap has grown by %d", held, counts.Deliveries, bound, grown)
			}
			run.stop()
			if err := run.wait(); err != nil {
				t.Error(err)
			}
		})
	}
}
