package consumer

import (
	"time"

	"github.com/semel-go/semel/identity"
)

// RetentionPolicy says how long markers and ended messages are kept; the zero value keeps them forever. Messages
// that have not ended, and parked messages, are always kept.
//
// A run with Keep records its progress and removes old markers, a few at a time; one process at a time does this.
// The retention is counted from the oldest unsettled message: while the consumer is down, or one of its lanes is
// behind, no marker is removed that a copy still to be read could need. See store.Reaper.
type RetentionPolicy struct {
	// Keep is how long markers are kept after their messages have ended, at least a minute. Keep must not be
	// shorter than the horizon, which is how late a copy can arrive: the retention of the source's broker, plus
	// the retries, plus Delay. If it is, Run, Work and Process return an error. If the horizon becomes longer
	// later, nothing is removed.
	Keep time.Duration
	// Bodies is how long the bodies of completed and discarded messages are kept in the inbox; 0 means as long as
	// their rows. Bodies may be set without Keep.
	Bodies time.Duration
	// Delay is how late a producer, or a system between the producer and the broker, may send a copy.
	Delay time.Duration
	// IDTime is the format of the time in ids. Without it the age of a message is computed from the timestamp of
	// its record (semel.Origin) or else of the event (semel.Message.Time). A message without any time counts as
	// older than the retention.
	IDTime identity.IDTime
	// DailyPartitions means that the store keeps markers in one partition per day and drops whole days.
	// DailyPartitions needs a store for this consumer alone (sqlstore.Store.Dated, pgxstore.Store.Dated) with
	// IDTime as its kind of ids. An id without such a time cannot be used as identity. OnExpired also ends
	// messages whose id is of a future day.
	DailyPartitions bool
	// OnExpired is the action for a message that is older than the retention and has no marker, so that it may
	// have been applied before: ActionPark, ActionDeadLetter, ActionHalt or ActionDiscard. The age of messages
	// with a version is not checked, because their streams show whether they were applied.
	OnExpired Action
	// Off disables the reaper in all processes.
	Off bool
}

// ladder returns the maximum duration of all retries of a message.
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
