package kafka

import (
	"bytes"
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/kafka/internal/message"
	"github.com/semel-go/semel/source"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

// heap returns the memory in use after a garbage collection.
func heap() int64 {
	runtime.GC()
	runtime.GC() // only a second garbage collection empties pools
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// compress writes n records that compress well, in few batches. The parameter size is the length of each value.
func compress(t testing.TB, brokers []string, n, size int, codec kgo.CompressionCodec, batch int32) {
	t.Helper()
	c, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.DisableClientMetrics(),
		kgo.ProducerBatchCompression(codec), kgo.ProducerBatchMaxBytes(batch))
	must(t, err)
	defer c.Close()
	value := bytes.Repeat([]byte("compressible "), size/13+1)[:size]
	for range n {
		c.Produce(t.Context(), &kgo.Record{Topic: "orders", Value: value}, func(_ *kgo.Record, err error) {
			if err != nil {
				t.Error(err)
			}
		})
	}
	must(t, c.Flush(t.Context()))
}

// readAll reads and acks n records with a byte limit, and returns the largest memory in use.
func readAll(t testing.TB, r *reader, n int, bound int64) int64 {
	t.Helper()
	ctx, cancel := contextFor(t, patience)
	defer cancel()
	var most, step int64
	for got := 0; got < n; step++ {
		all, err := r.Fetch(ctx, source.Bound{Messages: 1000, Bytes: bound})
		if err != nil || ctx.Err() != nil {
			t.Fatal(got, err, ctx.Err())
		}
		for i := range all {
			if at := all[i].Message.Origin.Offset; at != int64(got+i) {
				t.Fatalf("after offset %d came %d", got+i-1, at)
			}
		}
		got += len(all)
		if step < 10 || step%20 == 0 {
			most = max(most, heap())
		}
		if left, err := r.Settle(ctx, settlements(semel.Ack, all)); err != nil || len(left) > 0 {
			t.Fatal(left, err)
		}
	}
	return most
}

func TestMemoryIsBoundedByWhatRecordsAreAndNotByWhatTheyAreCompressed(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		name        string
		count, size int
		codec       kgo.CompressionCodec
		bound       int64
	}{
		{"trap_T91_many_small_records_that_compress_well", 60_000, 1_000, kgo.ZstdCompression(), 8 * mib},
		{"trap_T91_records_of_900_KB_that_compress_to_nothing", 300, 900_000, kgo.ZstdCompression(), 8 * mib},
		{"trap_T91_with_gzip", 150, 900_000, kgo.GzipCompression(), 16 * mib},
		{"trap_T91_with_lz4", 150, 900_000, kgo.Lz4Compression(), 16 * mib},
		{"trap_T91_with_snappy", 150, 900_000, kgo.SnappyCompression(), 16 * mib},
	} {
		t.Run(c.name, func(t *testing.T) {
			config, _ := setUp(t)
			compress(t, config.Brokers, c.count, c.size, c.codec, 2*mib)
			before := heap()
			used := readAll(t, read(t, config), c.count, c.bound) - before
			if used > 2*c.bound+4*mib {
				t.Errorf("%.1f MiB were in use with a limit of %d MiB", float64(used)/mib, c.bound/mib)
			}
			t.Logf("%.1f MiB in use, bound %d MiB", float64(used)/mib, c.bound/mib)
		})
	}
}

func TestOneThatIsHeldHoldsItself(t *testing.T) {
	t.Run("trap_T87_a_held_record_does_not_hold_the_batch_it_came_in", func(t *testing.T) {
		const count, size, of = 60_000, 1_000, 256
		config, _ := setUp(t)
		compress(t, config.Brokers, count, size, kgo.ZstdCompression(), 1<<20)
		before := heap()
		r := read(t, config)
		ctx, cancel := contextFor(t, patience)
		defer cancel()
		var held []*semel.Message
		for n := 0; n < count; {
			all, err := r.Fetch(ctx, source.Bound{Messages: 1000, Bytes: 64 << 20})
			if err != nil || ctx.Err() != nil {
				t.Fatal(n, err, ctx.Err())
			}
			for i := range all {
				if n++; n%of == 0 {
					held = append(held, all[i].Message)
				} else if left, err := r.Settle(ctx, settlements(semel.Ack, all[i:i+1])); err != nil || len(left) > 0 {
					t.Fatal(left, err)
				}
			}
		}
		used := heap() - before
		runtime.KeepAlive(held)
		if used > 8<<20 {
			t.Errorf("%d records of %d bytes are held, and %.1f MiB are in use", len(held), size, float64(used)/(1<<20))
		}
		t.Logf("%d held, %.1f MiB", len(held), float64(used)/(1<<20))
	})
}

func TestABatchThatExpandsBeyondMeasure(t *testing.T) {
	t.Run("trap_T91_it_stops_its_partition_by_name_and_the_others_go_on", func(t *testing.T) {
		config, p := setUp(t, kfake.SeedTopics(2, "bombs"))
		config.Topics = []string{"bombs"}
		bomb, err := kgo.NewClient(kgo.SeedBrokers(config.Brokers...), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.DisableClientMetrics(),
			kgo.ProducerBatchCompression(kgo.ZstdCompression()), kgo.ProducerBatchMaxBytes(90<<20))
		must(t, err)
		defer bomb.Close()
		put(t, p, "bombs", 0, "before")
		must(t, bomb.ProduceSync(t.Context(), &kgo.Record{Topic: "bombs", Value: make([]byte, 80<<20)}).FirstErr())
		put(t, p, "bombs", 0, "behind")
		put(t, p, "bombs", 1, "other")
		r := read(t, config)
		r.ack(r.takeUntil("before", "other")...)
		text := r.fetchFault()
		expectContains(t, text, "topic bombs, partition 0", "offsets 1 to 1", "32 MiB", "MaxBatch", "memory of about four times the batch", "--topic bombs:0 --to-offset 2")
		awaitOffset(t, p, "billing", "bombs", 1, 1)
		r.close()
		config.MaxBatch = 100 << 20
		second := read(t, config)
		got := second.take(2)
		if got[0].Refused != semel.ReasonTooLarge || string(got[1].Message.Body) != "behind" {
			t.Errorf("with a larger bound: %q, %s", got[0].Refused, formatBodies(got[1:]))
		}
	})
}

// takeUntil fetches until the wanted bodies have arrived, in any order, and ignores errors.
func (r *reader) takeUntil(wanted ...string) []source.Delivery {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	var all []source.Delivery
	for len(all) < len(wanted) && ctx.Err() == nil {
		got, _ := r.Fetch(ctx, wide)
		all = append(all, got...)
	}
	return all
}

func TestLanesThatFoundNoRoomGoOn(t *testing.T) {
	t.Run("trap_T91_a_paused_lane_that_holds_the_bound_lets_the_others_go_on_in_order", func(t *testing.T) {
		const lanes, each = 5, 30
		c := cluster(t, kfake.SeedTopics(lanes, "orders"))
		p, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchMaxBytes(4<<20), kgo.ProducerBatchCompression(kgo.ZstdCompression()))
		must(t, err)
		defer p.Close()
		value := make([]byte, 400_000)
		for n := range lanes * each {
			p.Produce(t.Context(), &kgo.Record{Topic: "orders", Partition: int32(n % lanes), Value: value}, nil)
		}
		must(t, p.Flush(t.Context()))
		r := read(t, Config{Brokers: c.ListenAddrs(), Topics: []string{"orders"}, Group: "billing"})
		ctx, cancel := contextFor(t, patience)
		defer cancel()
		var paused source.Lane
		next := map[int32]int64{}
		for got := 0; got < lanes*each && ctx.Err() == nil; {
			all, err := r.Fetch(ctx, source.Bound{Messages: 1000, Bytes: 1 << 20})
			must(t, err)
			for i := range all {
				o := all[i].Message.Origin
				if all[i].Lane == paused && got < (lanes-1)*each || o.Offset != next[o.Partition] {
					t.Fatalf("in partition %d offset %d came instead of %d, after %d", o.Partition, o.Offset, next[o.Partition], got)
				}
				next[o.Partition]++
				got++
			}
			r.ack(all...)
			switch {
			case paused.ID == "" && len(all) > 0:
				paused = all[0].Lane
				r.Flow(paused, false)
			case got >= (lanes-1)*each:
				r.Flow(paused, true)
			}
		}
		for partition := range int32(lanes) {
			if next[partition] != each {
				t.Errorf("in partition %d %d records came instead of %d", partition, next[partition], each)
			}
		}
	})
	t.Run("trap_T91_records_that_are_too_large_count_with_all_their_bytes", func(t *testing.T) {
		config, p := setUp(t)
		config.MaxRecord, config.DeadLetters = message.Kept, "letters"
		for range 20 {
			must(t, p.ProduceSync(t.Context(), &kgo.Record{Topic: "orders", Value: make([]byte, 900_000)}).FirstErr())
		}
		r := read(t, config)
		bound := source.Bound{Messages: 100, Bytes: 3 << 20}
		ctx, cancel := contextFor(t, patience)
		defer cancel()
		var held []source.Delivery
		for len(held) < 3 && ctx.Err() == nil {
			all, err := r.Fetch(ctx, bound)
			must(t, err)
			held = append(held, all...)
		}
		short, end := contextFor(t, 300*time.Millisecond)
		defer end()
		for short.Err() == nil {
			all, _ := r.Fetch(short, bound)
			held = append(held, all...)
		}
		if len(held) > 5 {
			t.Errorf("%d records of 900 KB are held with a limit of 3 MiB", len(held))
		}
		r.ack(held...)
		r.take(1)
	})
}
