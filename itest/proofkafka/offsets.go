//go:build linux

package proofkafka

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// offsets asks for the group's offsets all the time, and notes when one goes
// back.
type offsets struct {
	admin   *kadm.Client
	cancel  context.CancelFunc
	done    chan struct{}
	highest map[int32]int64
	// samples are answers, backwards what went back.
	samples   int
	backwards []string
}

// sampling is how often the offsets are asked for.
const sampling = 50 * time.Millisecond

func watchOffsets(brokers []string) (*offsets, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	o := &offsets{admin: kadm.NewClient(client), cancel: cancel, done: make(chan struct{}), highest: map[int32]int64{}}
	go func() {
		defer close(o.done)
		o.watch(ctx)
	}()
	return o, nil
}

func (o *offsets) watch(ctx context.Context) {
	ticker := time.NewTicker(sampling)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		o.sample(ctx)
	}
}

func (o *offsets) sample(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	now, err := o.admin.FetchOffsets(ctx, group)
	if err != nil || now.Error() != nil {
		return // the broker is away
	}
	o.samples++
	o.note(now)
}

// note compares an answer with the highest seen; what was there and is gone
// has gone back, too.
func (o *offsets) note(now kadm.OffsetResponses) {
	for partition, before := range o.highest {
		at := int64(-1)
		if found, known := now.Lookup(topic, partition); known {
			at = found.At
		}
		if at < before {
			o.backwards = append(o.backwards, fmt.Sprintf("partition %d from %d to %d", partition, before, at))
		}
	}
	now.Each(func(r kadm.OffsetResponse) {
		if r.Topic == topic && r.Err == nil {
			o.highest[r.Partition] = r.At
		}
	})
}

func (o *offsets) stop() {
	o.cancel()
	<-o.done
	o.admin.Close()
}
