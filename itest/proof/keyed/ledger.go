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

// Ledger counts messages and calls to the provider in a run of the proof, and why calls were
// repeated.
type Ledger struct {
	Deliveries int `json:"deliveries"`
	Messages   int `json:"messages"`
	// Calls is the number of calls at the provider; Lost messages had no call that was
	// answered.
	Calls int `json:"calls"`
	Lost  int `json:"lost"`
	// Unfinished is the number of messages that the members' last runs left.
	Unfinished int `json:"unfinished"`
	// Repeated are the calls beyond the first of their message. AfterSilence: the call before
	// got no answer. AfterLease: a lease ended after a fault of the caller or of Redis that
	// may have prevented the record of the call's end. Late: the caller had just been frozen
	// for longer than a lease.
	Repeated     int `json:"repeated"`
	AfterSilence int `json:"repeated_after_an_unknown_outcome"`
	AfterLease   int `json:"repeated_after_a_lease_ended"`
	Late         int `json:"repeated_by_a_process_that_was_frozen"`
	// Unexplained are the other repeated calls; Forgotten are those of them that Redis may
	// have forgotten.
	Unexplained int `json:"repeated_for_no_reason"`
	Forgotten   int `json:"repeated_since_redis_forgot"`
	// OtherKeys are repeated calls with another idempotency key than the first.
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
		return fmt.Errorf("lost %d, unfinished %d, repeated without a reason %d, with another key %d", l.Lost, l.Unfinished, l.Unexplained, l.OtherKeys)
	}
	return nil
}

// Fault implements proof.Ledger.
func (l Ledger) Fault() error {
	return cmp.Or(l.Wrong(), ledger.AtLeast(l.leastKills, l.Kills, "kills"), ledger.AtLeast(l.leastRepeated, l.Repeated, "calls repeated"))
}

// slack is how much earlier than a lease after the previous call a call may arrive, because a
// claim is made before its call. slack is also how long after its thaw a process may still send
// a call that it had prepared, and the longest delay between sending and arrival.
const slack = time.Second

// harm is a fault of a member or, with an empty name, of all: Redis was killed, or the machine
// paused the proof.
type harm struct {
	member string
	at     time.Time
	// thaw is when a frozen process continued, zero for other faults.
	thaw time.Time
}

// unrecorded reports whether this fault may have prevented the record of a call's end, which a
// process tries for as long as a lease. On a busy machine the provider may see the call of a
// killed process after its death.
func (h harm) unrecorded(c call, lease time.Duration) bool {
	return (h.member == "" || h.member == c.member) && !h.at.Before(c.at.Add(-slack)) && h.at.Before(c.at.Add(lease))
}

// late reports whether a call was prepared before its process was frozen.
func (h harm) late(c call) bool {
	return !h.thaw.IsZero() && h.member == c.member && c.at.After(h.thaw) && c.at.Before(h.thaw.Add(slack))
}

// weigh classifies the calls of each message.
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

// repeat returns the reason why a call was repeated.
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
