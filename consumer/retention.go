package consumer

import (
	"fmt"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/store"
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

// leastKeep is the shortest retention: shorter ones are a mistaken unit.
const leastKeep = time.Minute

func (c *Config) checkRetention(fault faultFunc) {
	r := &c.Retention
	check := func(field string, d, least time.Duration) {
		if d != 0 && (d < least || d > 200*365*24*time.Hour) {
			fault("Retention."+field, "is %v; it must be %v to 200 years, or 0", d, least)
		}
	}
	check("Keep", r.Keep, leastKeep)
	check("Bodies", r.Bodies, leastKeep)
	check("Delay", r.Delay, 0)
	switch {
	case r.Bodies > 0 && r.Keep > 0 && r.Bodies >= r.Keep:
		fault("Retention.Bodies", "is %v, and the identities are kept for %v only; make it shorter, or leave it out", r.Bodies, r.Keep)
	case r.IDTime > identity.Snowflake:
		fault("Retention.IDTime", "%v is not a kind of id", r.IDTime)
	case r.OnExpired != ActionPark && r.OnExpired != ActionDeadLetter && r.OnExpired != ActionHalt && r.OnExpired != ActionDiscard:
		fault("Retention.OnExpired", "%v is not an ending that is possible here", r.OnExpired)
	case r.DailyPartitions && r.IDTime == identity.NoIDTime:
		fault("Retention.DailyPartitions", "needs ids that carry their time; set IDTime")
	case r.Keep == 0 && (r.DailyPartitions || r.Delay != 0 || r.IDTime != identity.NoIDTime || r.OnExpired != ActionPark):
		fault("Retention", "says what becomes of what is older than what is kept, and all is kept for ever; set Keep")
	}
}

// fitsRetention says why the store cannot do what the policy asks for; nil if it can.
func (c *Config) fitsRetention(st any) error {
	if _, able := st.(store.Reaper); !able && c.Retention != (RetentionPolicy{}) {
		return fmt.Errorf("the store keeps everything for ever, and Retention is set; use a store that can remove, or leave it out: %w", semel.ErrUnsupported)
	}
	return c.fitsDays(st)
}

// fitsDays says why policy and store do not both keep markers by day.
func (c *Config) fitsDays(st any) error {
	kind := limitsOf(byTransaction, st).PartitionedBy
	switch r := &c.Retention; {
	case r.DailyPartitions && kind == "":
		return fmt.Errorf("Retention.DailyPartitions is set, and the store keeps no markers by day; give it the one that Dated returns, of a store in PostgreSQL: %w", semel.ErrUnsupported)
	case kind != "" && !r.DailyPartitions:
		return fmt.Errorf("the store keeps markers by day, and Retention.DailyPartitions is not set; set it, with IDTime %s: %w", kind, semel.ErrUnsupported)
	case kind != "" && kind != r.IDTime.String():
		return fmt.Errorf("the store keeps markers by the time of ids of the kind %s, and Retention.IDTime is %v: %w", kind, r.IDTime, semel.ErrUnsupported)
	}
	return nil
}

// ladder is how long all retries of a message take at most.
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
