package proof

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/semel-go/semel/itest/services/topics"
)

// Offsets is what a ledger holds of a group's offsets.
type Offsets struct {
	// Samples of them were taken, Backwards is how often one went back, Rewinds
	// are the first of these.
	Samples   int      `json:"offset_samples"`
	Backwards int      `json:"offsets_went_back"`
	Rewinds   []string `json:"rewinds,omitempty"`
	// Behind is how far they are from the ends of the partitions.
	Behind  int64 `json:"behind_the_end"`
	highest map[int32]int64
}

// Wrong says what is wrong with them; nil if nothing is.
func (o Offsets) Wrong() error {
	if o.Backwards != 0 {
		return fmt.Errorf("the group's offsets went back %d times, at first: %v", o.Backwards, o.Rewinds)
	}
	if o.Behind != 0 {
		return fmt.Errorf("the group's offsets are %d away from the ends of the partitions", o.Behind)
	}
	return nil
}

// note compares an answer with the highest seen; what was there and is gone has
// gone back, too.
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

// Watch asks for a group's offsets all the time.
type Watch struct {
	kafka        *topics.Cluster
	group, topic string
	cancel       context.CancelFunc
	done         sync.WaitGroup
	seen         Offsets
}

// WatchOffsets begins to watch.
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

// sample asks once; a broker may be away.
func (w *Watch) sample(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if now, err := w.kafka.TryCommitted(ctx, w.group, w.topic); err == nil {
		w.seen.note(now)
	}
}

// AtEnd reports whether the group has settled all that is in the topic.
func (w *Watch) AtEnd(ctx context.Context) bool {
	behind, err := w.kafka.TryBehind(ctx, w.group, w.topic)
	return err == nil && behind == 0
}

// Stop ends the watch; it may be called again.
func (w *Watch) Stop() {
	w.cancel()
	w.done.Wait()
}

// Audit stops and says what was seen, and where the offsets are at last.
func (w *Watch) Audit(ctx context.Context) (_ Offsets, err error) {
	w.Stop()
	w.seen.Behind, err = w.kafka.TryBehind(ctx, w.group, w.topic)
	return w.seen, err
}
