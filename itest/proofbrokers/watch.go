package proofbrokers

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/semel-go/semel/itest/topics"
)

// watch asks for the group's offsets all the time and notes when one goes back.
type watch struct {
	cancel  context.CancelFunc
	group   sync.WaitGroup
	highest map[int32]int64
	// samples are answers; backwards is what went back.
	samples   int
	backwards []string
}

func newWatch(kafka *topics.Cluster, group, topic string) *watch {
	ctx, cancel := context.WithCancel(context.Background())
	w := &watch{cancel: cancel, highest: map[int32]int64{}}
	w.group.Go(func() {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				w.sample(ctx, kafka, group, topic)
			}
		}
	})
	return w
}

func (w *watch) sample(ctx context.Context, kafka *topics.Cluster, group, topic string) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	now, err := kafka.TryCommitted(ctx, group, topic)
	if err != nil {
		return // a broker is away
	}
	w.note(now)
}

// note compares an answer with the highest seen; what was there and is gone has
// gone back, too.
func (w *watch) note(now map[int32]int64) {
	w.samples++
	for partition, before := range w.highest {
		if at, known := now[partition]; !known || at < before {
			w.backwards = append(w.backwards, fmt.Sprintf("partition %d from %d to %d", partition, before, at))
		}
	}
	for partition, at := range now {
		w.highest[partition] = at
	}
}

// stop may be called again.
func (w *watch) stop() {
	w.cancel()
	w.group.Wait()
}
