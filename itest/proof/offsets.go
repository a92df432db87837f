package proof

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/semel-go/semel/itest/services/topics"
)

// Offsets is the part of a ledger about the committed offsets of a group.
type Offsets struct {
	// Samples is the number of samples. Backwards is the number of times that an offset decreased. Rewinds describes
	// the first decreases of an offset.
	Samples   int      `json:"offset_samples"`
	Backwards int      `json:"offsets_went_back"`
	Rewinds   []string `json:"rewinds,omitempty"`
	// Behind is the number of records between the committed offsets and the ends of the partitions.
	Behind  int64 `json:"behind_the_end"`
	highest map[int32]int64
}

// Wrong returns an error that describes wrong offsets, or nil.
func (o Offsets) Wrong() error {
	if o.Backwards != 0 {
		return fmt.Errorf("the group's offsets decreased %d times; the first cases: %v", o.Backwards, o.Rewinds)
	}
	if o.Behind != 0 {
		return fmt.Errorf("the group's offsets are %d away from the ends of the partitions", o.Behind)
	}
	return nil
}

// Add adds the samples of another group.
func (o *Offsets) Add(other Offsets) {
	o.Samples += other.Samples
	o.Backwards += other.Backwards
	o.Rewinds = append(o.Rewinds, other.Rewinds...)
	o.Behind += other.Behind
}

// note compares a sample with the highest offsets of earlier samples. An offset that has disappeared counts
// as a decrease.
func (o *Offsets) note(now map[int32]int64) {
	o.Samples++
	for partition, before := range o.highest {
		at, known := now[partition]
		if known && at >= before {
			continue
		}
		if o.Backwards++; o.Backwards <= 10 {
			o.Rewinds = append(o.Rewinds, fmt.Sprintf("partition %d from %d to %d (there: %v)", partition, before, at, known))
		}
	}
	for partition, at := range now {
		o.highest[partition] = at
	}
}

// Watch samples the committed offsets of a group continuously.
type Watch struct {
	kafka        *topics.Cluster
	group, topic string
	cancel       context.CancelFunc
	done         sync.WaitGroup
	seen         Offsets
}

// WatchOffsets starts a Watch of a group.
func WatchOffsets(kafka *topics.Cluster, group, topic string) *Watch {
	ctx, cancel := context.WithCancel(context.Background())
	w := &Watch{kafka: kafka, group: group, topic: topic, cancel: cancel, seen: Offsets{highest: map[int32]int64{}}}
	w.done.Go(func() {
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				w.sample(ctx)
			}
		}
	})
	return w
}

// sample takes one sample. If a broker is down, sample takes no sample.
func (w *Watch) sample(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if now, err := w.kafka.TryCommitted(ctx, w.group, w.topic); err == nil {
		w.seen.note(now)
	}
}

// AtEnd reports whether the group has committed the offsets of all records in the topic.
func (w *Watch) AtEnd(ctx context.Context) bool {
	behind, err := w.kafka.TryBehind(ctx, w.group, w.topic)
	return err == nil && behind == 0
}

// Stop ends the watch. Stop may be called again.
func (w *Watch) Stop() {
	w.cancel()
	w.done.Wait()
}

// Audit ends the watch. The result summarises all samples, and says how many records the group has not committed.
func (w *Watch) Audit(ctx context.Context) Offsets {
	w.Stop()
	w.seen.Behind = Must(w.kafka.TryBehind(ctx, w.group, w.topic))
	return w.seen
}
