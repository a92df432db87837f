package consumer

import (
	"time"

	"github.com/semel-go/semel/identity"
)

// RetentionPolicy says how long markers and ended messages are kept. With the zero value, markers and ended messages
// are kept forever. Messages that have not ended, and parked messages, are always kept.
//
// If Keep is set, a run records its progress and removes old markers, a few at a time. Only one process at a time
// removes markers. The retention is counted from the oldest message that is not acked. So while the consumer is down,
// or while one of its lanes is behind, no marker is removed that a later duplicate could need. See store.Reaper.
type RetentionPolicy struct {
	// Keep is how long markers are kept after their messages have ended, at least a minute. Keep must not be shorter
	// than the time after which a duplicate can still arrive. A duplicate can arrive as long as the broker keeps the
	// message, plus the duration of all retries, plus Delay. If Keep is shorter than this sum, Run, Work and Process
	// return an error. If the sum becomes longer than Keep during a run, no more markers are removed.
	Keep time.Duration
	// Bodies is how long the bodies of completed and discarded messages are kept in the inbox. 0 means that
	// bodies are kept as long as their rows. Bodies may be set without Keep.
	Bodies time.Duration
	// Delay is how late a producer, or a system between the producer and the broker, may send a duplicate.
	Delay time.Duration
	// IDTime is the format of the time in ids. If IDTime is not set, the age of a message is computed from
	// the timestamp of its record (semel.Origin) or, without a timestamp, from the time of the event
	// (semel.Message.Time). A message without any time counts as older than the retention.
	IDTime identity.IDTime
	// DailyPartitions means that the store keeps markers in one partition per day and drops whole partitions.
	// DailyPartitions needs a store that only one consumer uses (sqlstore.Store.Dated, pgxstore.Store.Dated), and
	// IDTime must be the store's kind of ids. An id without a time in the format IDTime is not a usable identity.
	// Messages whose id has a time on a future day also end as OnExpired says.
	DailyPartitions bool
	// OnExpired is the action for a message that is older than the retention and has no marker: ActionPark,
	// ActionDeadLetter, ActionHalt or ActionDiscard. A message that is older than the retention may have been applied
	// before. The age of messages with a version is not checked, because their streams record which versions were
	// applied.
	OnExpired Action
	// Off disables the removal of old markers in all processes.
	Off bool
}

// ladder returns the maximum time that all retries of a message together take.
func (c *Config) ladder() (sum time.Duration) {
	wait := c.Retry.InitialDelay
	for n := 1; n < c.Retry.MaxAttempts; n++ {
		if wait >= c.Retry.MaxDelay {
			return sum + time.Duration(c.Retry.MaxAttempts-n)*c.Retry.MaxDelay
		}
		sum += wait
		wait *= 2
	}
	return sum
}
