package assembly

import (
	"cmp"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/semel-go/semel/kafka"
)

// patience is after how long without progress a partition is reported, and how
// often again.
const patience = time.Minute

// lanes is what is known of the partitions that one consumer owns: a line for
// the terminal, and a warning where one makes no progress.
type lanes struct {
	log *slog.Logger
	now func() time.Time

	mu     sync.Mutex
	known  map[partition]lane // under mu
	warned time.Time          // under mu
}

type partition struct {
	topic  string
	number int32
}

// lane is a state with since when its head is held up; zero if it is not.
type lane struct {
	kafka.LaneState
	heldUp time.Time
}

func newLanes(log *slog.Logger, now func() time.Time) *lanes {
	return &lanes{log: log, now: now, known: map[partition]lane{}}
}

// observe is kafka.Config.Observe.
func (l *lanes) observe(states []kafka.LaneState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	for _, s := range states {
		p := partition{s.Topic, s.Partition}
		if s.Lost {
			delete(l.known, p)
			continue
		}
		next := lane{LaneState: s}
		if s.HeldUp {
			next.heldUp = now
			if before := l.known[p].heldUp; !before.IsZero() {
				next.heldUp = before
			}
		}
		l.known[p] = next
	}
	l.warn(now)
}

// warn reports, at most once a minute, the partition that has made no progress
// for longest. That there is lag is no reason: markers of transactions at the
// end of a partition are counted as lag for ever.
func (l *lanes) warn(now time.Time) {
	stuck := slices.DeleteFunc(slices.Collect(maps.Values(l.known)), func(s lane) bool {
		return s.since().IsZero() || now.Sub(s.since()) < patience
	})
	if len(stuck) == 0 || now.Sub(l.warned) < patience {
		return
	}
	l.warned = now
	worst := slices.MinFunc(stuck, func(a, b lane) int {
		return cmp.Or(a.since().Compare(b.since()), cmp.Compare(a.Partition, b.Partition))
	})
	reason := "a message is not settled: it runs, waits for its next try or for the store"
	if worst.Unsettled == 0 {
		reason = "a transaction stays open at its head: find its producer, or let the broker end it (kafka-transactions.sh find-hanging)"
	}
	l.log.Warn("a partition makes no progress", slog.String("because", reason), slog.String("topic", worst.Topic), slog.Int("partition", int(worst.Partition)),
		slog.Duration("for", now.Sub(worst.since()).Round(time.Second)), slog.Int64("behind", max(worst.behind(), 0)), slog.Int("unsettled", worst.Unsettled),
		slog.Int("partitions_like_it", len(stuck)))
}

// since is since when the partition makes no progress, as far as is known;
// zero while it may.
func (s lane) since() time.Time {
	if s.Unsettled > 0 {
		return s.Oldest
	}
	return s.heldUp
}

// behind is how many records are there that are not settled, -1 where not known.
func (s lane) behind() int64 {
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

// line is for the terminal.
func (l *lanes) line() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.known) == 0 {
		return "no partitions"
	}
	var records int64
	var paused, heldUp int
	var oldest time.Time
	for _, s := range l.known {
		records += max(s.behind(), 0)
		if s.Unsettled > 0 && (oldest.IsZero() || s.Oldest.Before(oldest)) {
			oldest = s.Oldest
		}
		if s.Paused {
			paused++
		}
		if s.HeldUp {
			heldUp++
		}
	}
	parts := []string{fmt.Sprintf("behind %d", records)}
	if !oldest.IsZero() {
		parts = append(parts, fmt.Sprintf("oldest %v", l.now().Sub(oldest).Round(time.Second)))
	}
	parts = append(parts, fmt.Sprintf("partitions %d", len(l.known)))
	parts = append(parts, someOf("paused", paused)...)
	return strings.Join(append(parts, someOf("held up", heldUp)...), "  ")
}

func someOf(what string, n int) []string {
	if n == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%s %d", what, n)}
}
