//go:build unix

package keyed

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/proof/ledger"
)

// Ledger is what came out.
type Ledger struct {
	Deliveries int `json:"deliveries"`
	Messages   int `json:"messages"`
	// Calls are those that came to the provider; Lost messages had none that was answered.
	Calls int `json:"calls"`
	Lost  int `json:"lost"`
	// Unfinished are those that the members' last runs left.
	Unfinished int `json:"unfinished"`
	// Repeated are the calls beyond the first of their message: AfterSilence, where the one
	// before got no answer, AfterLease, where something had been done to whoever made it, or
	// to Redis, before it can have recorded its end, and a lease had ended since, and Late, of
	// a process that had just been frozen for longer than a lease.
	Repeated     int `json:"repeated"`
	AfterSilence int `json:"repeated_after_an_unknown_outcome"`
	AfterLease   int `json:"repeated_after_a_lease_ended"`
	Late         int `json:"repeated_by_a_process_that_was_frozen"`
	// Unexplained are the others; Forgotten are those of them where Redis may forget.
	Unexplained int `json:"repeated_for_no_reason"`
	Forgotten   int `json:"repeated_since_redis_forgot"`
	// OtherKeys are repeated calls under another idempotency key than the first.
	OtherKeys int           `json:"repeated_under_another_key"`
	Kills     int           `json:"kills"`
	Freezes   int           `json:"freezes"`
	Restarts  int           `json:"redis_restarts"`
	Again     int           `json:"started_again"`
	Seconds   proof.Seconds `json:"seconds"`

	leastKills, leastRepeated int
}

// Wrong implements proof.Ledger.
func (l Ledger) Wrong() error {
	if l.Lost != 0 || l.Unfinished != 0 || l.Unexplained != 0 || l.OtherKeys != 0 {
		return fmt.Errorf("lost %d, unfinished %d, repeated for no reason %d, under another key %d", l.Lost, l.Unfinished, l.Unexplained, l.OtherKeys)
	}
	return nil
}

// Fault implements proof.Ledger.
func (l Ledger) Fault() error {
	return cmp.Or(l.Wrong(), ledger.AtLeast(l.leastKills, l.Kills, "kills"), ledger.AtLeast(l.leastRepeated, l.Repeated, "calls repeated"))
}

// slack is how much earlier than a lease after the call before it a call may come: a claim
// is made before its call. It is also how long after its thaw a process may still send a call
// that it was about to send, and how much later than it was sent a call may be seen.
const slack = time.Second

// harm is what was done to a member, or with an empty name to all of them: Redis was killed, or
// the machine did not get to it.
type harm struct {
	member string
	at     time.Time
	// thaw is when a frozen process went on, zero for other harm.
	thaw time.Time
}

// unrecorded reports whether this harm may have kept the end of a call from being recorded:
// a process tries that for as long as a lease. On a busy machine a call of a process that was
// killed is seen by the provider when the process is gone.
func (h harm) unrecorded(c call, lease time.Duration) bool {
	return (h.member == "" || h.member == c.member) && !h.at.Before(c.at.Add(-slack)) && h.at.Before(c.at.Add(lease))
}

// late reports whether a call is one that was about to be sent when its process was frozen.
func (h harm) late(c call) bool {
	return !h.thaw.IsZero() && h.member == c.member && c.at.After(h.thaw) && c.at.Before(h.thaw.Add(slack))
}

// weigh sorts the calls of each message.
func (l *Ledger) weigh(calls map[string][]call, messages int, lease time.Duration, harms []harm, mayForget bool) {
	l.Messages = messages
	heard := 0
	for _, all := range calls {
		l.Calls += len(all)
		answered := !all[0].unanswered
		for i := 1; i < len(all); i++ {
			l.repeat(all[0], all[i-1], all[i], lease, harms, mayForget)
			answered = answered || !all[i].unanswered
		}
		if answered {
			heard++
		}
	}
	l.Lost = messages - heard
}

// repeat says why a call came again.
func (l *Ledger) repeat(first, before, again call, lease time.Duration, harms []harm, mayForget bool) {
	l.Repeated++
	if again.key != first.key || again.key == "" {
		l.OtherKeys++
	}
	switch {
	case before.unanswered:
		l.AfterSilence++
	case again.at.Sub(before.at) >= lease-slack && slices.ContainsFunc(harms, func(h harm) bool { return h.unrecorded(before, lease) }):
		l.AfterLease++
	case slices.ContainsFunc(harms, func(h harm) bool { return h.late(again) }):
		l.Late++
	case mayForget:
		l.Forgotten++
	default:
		l.Unexplained++
	}
}
