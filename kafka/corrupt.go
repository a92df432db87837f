package kafka

import (
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// mostReads is how often a batch that cannot be read is read again: it may have
// been spoilt on its way. Each time by a new member, because the client may
// already have passed it.
const mostReads = 3

// corruptBatch is where in a partition a batch could not be read.
type corruptBatch struct {
	at    int64
	reads int
}

// unreadable reports whether a fetch brought something that is no batch: the
// brokers answered, and what failed is not theirs.
func unreadable(p *kgo.FetchPartition) bool {
	var answer *kerr.Error
	return p.HighWatermark > 0 && !errors.As(p.Err, &answer)
}

// corrupt notes a batch that cannot be read. Called with lanes.mu held.
func (i *intake) corrupt(l *lane, p *kgo.FetchPartition) {
	known := i.readAgain(l)
	what := fmt.Errorf("kafka: topic %s, partition %d: the batch at offset %d cannot be read", l.topic, l.partition, known.at)
	if known.reads < mostReads {
		l.broken = what
		i.faults.add(fmt.Errorf("%w and is read again: %w", what, p.Err))
		i.reflow(l)
		i.member.demandReplacement("a batch could not be read", l.topicPartition)
		return
	}
	i.standStill(l, fmt.Errorf("%w: it was damaged on the brokers' disks, or by who wrote it, and the partition waits; the others go on. Look for the batch (kafka-dump-log.sh); to pass it by, which loses what it holds, stop the consumer and set the group's offset behind it (kafka-consumer-groups.sh --reset-offsets --group %s --topic %s:%d --to-offset … --execute): %w",
		what, i.config.Group, l.topic, l.partition, p.Err))
}

// readAgain counts how often the batch where a lane stands could not be read.
func (i *intake) readAgain(l *lane) corruptBatch {
	i.mu.Lock()
	defer i.mu.Unlock()
	known := i.corruptBatches[l.topicPartition]
	if at := l.readAt(); known.at != at || known.reads == 0 {
		known = corruptBatch{at: at}
	}
	known.reads++
	i.corruptBatches[l.topicPartition] = known
	return known
}
