package kafka

import (
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/source"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// The method lastMove starts a process that ends when its source was empty for the time idle, and then calls the
// function cause, which stops lane 0 by a fault. The results are the process and the log.
func (w *world) lastMove(idle time.Duration, change func(*Config), cause func()) (*process, *lockedBuffer) {
	w.t.Helper()
	w.publish(0, numberedIDs("a", 1, 10)...)
	must(w.t, w.start(count, nil, whenIdle).waitEnd(w.t))
	w.publish(0, numberedIDs("a", 11, 30)...)
	w.publish(1, "beside")
	cause()
	text := &lockedBuffer{}
	log := logTo(text)
	return w.start(count, func(c *Config) {
		c.Logger = log
		if change != nil {
			change(c)
		}
	}, func(c *settings) { c.Logger, c.IdleExit = log, idle }), text
}

func TestALaneThatStandsStillIsNotASourceThatDoesNotWork(t *testing.T) {
	for name, cause := range map[string]func(w *world){
		"trap_T95_a_run_with_a_long_wait_ends_where_records_were_lost": func(w *world) {
			must(w.t, w.cluster.DeleteRecords(theTopic, 0, 20))
		},
		"trap_T95_a_run_with_a_long_wait_ends_where_a_batch_is_damaged": func(w *world) { w.spoil(10, 1<<40) },
	} {
		inWorld(t, name, 2, func(t *testing.T, w *world) {
			began := time.Now()
			p, text := w.lastMove(20*time.Second, nil, func() { cause(w) })
			if err := p.waitEnd(t); !errors.Is(err, semel.ErrUnfinished) || !strings.Contains(err.Error(), "orders/0") {
				t.Errorf("the run returned: %v", err)
			}
			if took := time.Since(began); took > 4*time.Minute {
				t.Errorf("it took %v", took)
			}
			w.expectOnce("beside")
			if left := p.consumer.Unfinished(); len(left) != 1 || !left[0].Fault || left[0].Lane != "orders/0" {
				t.Errorf("left is %+v", left)
			}
			if !strings.Contains(text.String(), "a partition has stopped") {
				t.Errorf("the log does not report the stopped lane:\n%.3000s", text.String())
			}
		})
	}
	inWorld(t, "trap_T95_a_run_with_a_long_wait_ends_where_the_brokers_refuse_a_read", 1, func(t *testing.T, w *world) {
		w.publish(0, "a")
		must(t, w.start(count, nil, whenIdle).waitEnd(t))
		w.publish(0, "b")
		w.refuseFetches()
		p := w.start(count, nil, func(c *settings) { c.IdleExit = 20 * time.Second })
		if err := p.waitEnd(t); !errors.Is(err, semel.ErrUnfinished) || !strings.Contains(err.Error(), "nothing can be read after offset 1") {
			t.Errorf("the run returned: %v", err)
		}
	})
	inWorld(t, "trap_T86_it_is_told_once_a_minute_by_name_and_the_source_works", 2, func(t *testing.T, w *world) {
		p, text := w.lastMove(0, nil, func() {
			must(t, w.cluster.DeleteRecords(theTopic, 0, 20))
		})
		pass(10 * time.Minute)
		w.expectOnce("beside")
		logSays(t, text, "a partition has stopped", 9, 12)
		if strings.Contains(text.String(), "source does not work") || strings.Contains(text.String(), "works again") {
			t.Errorf("the log says that the source does not work:\n%.3000s", text.String())
		}
		if ready, why := p.consumer.Ready(); !ready || !strings.Contains(why, "orders/0 stands still") {
			t.Errorf("ready %t: %q", ready, why)
		}
		if faults := p.source.Info().LaneFaults(); len(faults) != 1 || faults[0].Lane != "orders/0" || faults[0].Messages != 20 {
			t.Errorf("the faults are %+v", faults)
		}
	})
	inWorld(t, "I6_a_run_that_goes_on_behind_lost_records_does_not_end_before_it_has", 2, func(t *testing.T, w *world) {
		p, _ := w.lastMove(time.Second, func(c *Config) { c.OnLostRecords = GoOn }, func() {
			must(t, w.cluster.DeleteRecords(theTopic, 0, 20))
		})
		if err := p.waitEnd(t); err != nil || len(p.consumer.Unfinished()) > 0 {
			t.Errorf("%v, left %+v", err, p.consumer.Unfinished())
		}
		w.expectOnce(append(numberedIDs("a", 21, 30), "beside")...)
	})
}

// fetchFault fetches until a lane stops, and returns the fault of that lane. The test fails on a delivery or an
// error of Fetch.
func (r *reader) fetchFault() string {
	r.t.Helper()
	ctx, cancel := contextFor(r.t, patience)
	defer cancel()
	for ctx.Err() == nil {
		if faults := r.Info().LaneFaults(); len(faults) > 0 {
			return faults[0].Reason
		}
		short, end := contextFor(r.t, 100*time.Millisecond)
		got, err := r.Fetch(short, wide)
		end()
		if len(got) > 0 || err != nil && short.Err() == nil {
			r.t.Fatalf("came %s, %v", formatBodies(got), err)
		}
	}
	r.t.Fatal("no lane stops")
	return ""
}

// countFetches counts the fetches of partition 0 at an offset.
func (w *world) countFetches(at int64) *atomic.Int64 {
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

func (p *process) lane(partition int32) source.Lane {
	i := slices.IndexFunc(p.source.lanes.all(), func(l *lane) bool { return l.partition == partition })
	return p.source.lanes.all()[i].id
}

// expectPaused fails unless the client has paused exactly the given partitions.
func (p *process) expectPaused(t testing.TB, when string, partitions ...int32) {
	t.Helper()
	if paused := p.source.member.currentClient().PauseFetchPartitions(nil)[theTopic]; !slices.Equal(paused, partitions) {
		t.Errorf("%s partitions %v are paused, not %v", when, paused, partitions)
	}
}

func TestALaneWithABatchThatIsTooLarge(t *testing.T) {
	inWorld(t, "trap_T91_it_stands_still_paused_and_the_others_go_on", 2, func(t *testing.T, w *world) {
		// The codec is gzip and not zstd, because a zstd decoder must not be created in a synctest bubble.
		bomb := w.client(kgo.ProducerBatchCompression(kgo.GzipCompression()), kgo.ProducerBatchMaxBytes(8<<20))
		w.publish(0, "before")
		large := order(0, "large")
		large.Value = make([]byte, 4<<20)
		must(t, bomb.ProduceSync(t.Context(), large).FirstErr())
		w.publish(0, "behind")
		asked := w.countFetches(1)
		text := w.startWithLog(func(c *Config) { c.MaxRecord, c.MaxBatch = 1<<20, 2<<20 })
		p := w.processes["process 1"]
		for n := range 24 {
			id := numberedIDs("beside", n, n)[0]
			w.publish(1, id)
			w.waitUntil(time.Second, "the other partition continues", func() bool { return w.effect(id) == 1 })
			pass(5 * time.Second)
		}
		w.expectOnce("before")
		w.expectNoEffect("large", "behind")
		w.wantCommitted(0, 1)
		logSays(t, text, "the batch of offsets 1 to 1 is larger than 2 MiB", 2, 4)
		if n := asked.Load(); n < 1 || n > 3 {
			t.Errorf("the partition was requested %d times", n)
		}
		p.expectPaused(t, "while it stands", 0)
		p.source.Flow(p.lane(0), false)
		p.source.Flow(p.lane(0), true)
		p.expectPaused(t, "after the consumer has paused and resumed it", 0)
		if _, left, err := p.source.Info().Idle(t.Context()); err != nil || len(left) != 1 || left[0].Lane != "orders/0" || !left[0].Fault || left[0].Messages != 2 {
			t.Errorf("left is %+v: %v", left, err)
		}
	})
}
