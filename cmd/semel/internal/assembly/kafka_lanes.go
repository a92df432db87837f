package assembly

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/semel-go/semel/kafka"
)

// unsettledAge is the age from which a message that is neither acked nor nacked is logged, and the interval
// between such log lines.
const unsettledAge = time.Minute

// lanes has the states of one consumer's partitions. From the states of the partitions, lanes formats a line
// for the terminal, and logs a warning if a message delays a partition. The Kafka adapter itself warns about
// open transactions.
type lanes struct {
	log *slog.Logger
	now func() time.Time

	mu     sync.Mutex
	known  map[partition]lane // guarded by mu
	warned time.Time          // guarded by mu
}

type partition struct {
	topic  string
	number int32
}

type lane kafka.LaneState

func newLanes(log *slog.Logger, now func() time.Time) *lanes {
	return &lanes{log: log, now: now, known: map[partition]lane{}}
}

// observe implements kafka.Config.Observe.
func (l *lanes) observe(states []kafka.LaneState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range states {
		p := partition{s.Topic, s.Partition}
		l.known[p] = lane(s)
		if s.Lost {
			delete(l.known, p)
		}
	}
	l.warn(l.now())
}

// warn logs, at most once a minute, the partition whose oldest message has waited longest for its ack or
// nack. A partition whose fetched messages are all acked is not logged, even if the partition has a lag.
func (l *lanes) warn(now time.Time) {
	stuck := slices.DeleteFunc(slices.Collect(maps.Values(l.known)), func(s lane) bool {
		return s.Unsettled == 0 || now.Sub(s.Oldest) < unsettledAge
	})
	if len(stuck) == 0 || now.Sub(l.warned) < unsettledAge {
		return
	}
	l.warned = now
	worst := slices.MinFunc(stuck, func(a, b lane) int { return a.Oldest.Compare(b.Oldest) })
	l.log.Warn("a partition makes no progress: its oldest message is not settled; it is running, or waits for its next attempt or for the store",
		slog.String("topic", worst.Topic), slog.Int("partition", int(worst.Partition)), slog.Duration("for", now.Sub(worst.Oldest).Round(time.Second)),
		slog.Int64("behind", max(worst.lag(), 0)), slog.Int("unsettled", worst.Unsettled), slog.Int("partitions_like_it", len(stuck)))
}

// lag returns the number of records that are not acked, or -1 if the number is unknown.
func (s lane) lag() int64 {
	switch {
	case s.End < 0:
		return -1
	case s.Committed >= 0:
		return max(s.End-s.Committed, 0)
	case s.Delivered >= 0:
		return max(s.End-s.Delivered, 0) + int64(s.Unsettled)
	}
	return -1
}

func (l *lanes) line() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.known) == 0 {
		return "no partitions"
	}
	records, known := int64(0), false
	var paused, heldUp, standing int
	var oldest time.Time
	for _, s := range l.known {
		if n := s.lag(); n >= 0 {
			records, known = records+n, true
		}
		if s.Unsettled > 0 && (oldest.IsZero() || s.Oldest.Before(oldest)) {
			oldest = s.Oldest
		}
		if s.Paused {
			paused++
		}
		if s.HeldUp {
			heldUp++
		}
		if s.Fault != nil {
			standing++
		}
	}
	parts := []string{"behind ?"}
	if known {
		parts[0] = fmt.Sprintf("behind %d", records)
	}
	if !oldest.IsZero() {
		parts = append(parts, fmt.Sprintf("oldest %v", l.now().Sub(oldest).Round(time.Second)))
	}
	parts = append(parts, fmt.Sprintf("partitions %d", len(l.known)))
	parts = append(parts, describeCount("paused", paused)...)
	parts = append(parts, describeCount("held up", heldUp)...)
	return strings.Join(append(parts, describeCount("standing", standing)...), "  ")
}

func describeCount(what string, n int) []string {
	if n == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%s %d", what, n)}
}
