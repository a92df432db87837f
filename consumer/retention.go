package consumer

import (
	"time"

	"github.com/semel-go/semel/identity"
)

// RetentionPolicy says how long what has ended is remembered; the zero value: for ever.
// What has not ended, or is parked, stays whatever it says.
//
// A run with Keep records how far it is, and removes what is past its retention, a little
// at a time and while no other process does. The retention of a consumer begins anew with
// whatever it has not settled: while it is down, or a lane of it is behind, nothing is
// removed that a copy still to be read could need. See store.Reaper.
type RetentionPolicy struct {
	// Keep is how long identities are recognised after their messages have ended, at
	// least a minute. It must not be shorter than the horizon, which is how late a copy
	// can come: what the source's broker keeps, the retries, and Delay. New does not know
	// it; Run, Work and Process refuse. If it becomes longer later, nothing is removed.
	Keep time.Duration
	// Bodies is after how long the bodies of messages in the inbox are removed that are
	// completed or discarded, while their identities stay; 0: with them. It may be set
	// without Keep.
	Bodies time.Duration
	// Delay is how late a producer, or what lies between it and the broker, may send a
	// copy.
	Delay time.Duration
	// IDTime says which time ids carry. Without it a message's age is that of its record
	// (semel.Origin), else of the event (semel.Message.Time). A message without any
	// counts as older than what is kept.
	IDTime identity.IDTime
	// DailyPartitions says that the store keeps markers in one partition per day and drops
	// whole days. It needs a store for this consumer alone (sqlstore.Store.Dated,
	// pgxstore.Store.Dated) whose kind of ids is IDTime. An id without such a time is a bad
	// identity; OnExpired also ends an id of a day that has not come.
	DailyPartitions bool
	// OnExpired ends a message that is older than what is kept, and of which nothing is known:
	// whether it has taken effect, nobody can tell. ActionPark, ActionDeadLetter, ActionHalt or
	// ActionDiscard. Messages with a version are not asked for their age: their streams
	// tell.
	OnExpired Action
	// Off: nothing is removed, whoever runs a reaper.
	Off bool
}

// ladder returns how long all retries of a message take at most.
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
