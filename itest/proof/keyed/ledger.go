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

// Ledger counts messages and calls to the provider in one run of the fault test. Repeated calls are counted by reason.
type Ledger struct {
	Deliveries int `json:"deliveries"`
	Messages   int `json:"messages"`
	// Calls is the number of calls that the provider received. Lost is the number of messages without an
	// answered call.
	Calls int `json:"calls"`
	Lost  int `json:"lost"`
	// Unfinished is the number of messages that were still open when the members' last runs ended.
	Unfinished int `json:"unfinished"`
	// Repeated is the number of calls beyond the first call of their message. AfterSilence counts repeated calls whose
	// previous call got no answer. AfterLease counts repeated calls where a fault of the caller or of Redis may have
	// prevented the record that the previous call had ended, so that the lease expired. Late counts repeated calls
	// whose caller had just been frozen for longer than a lease.
	Repeated     int `json:"repeated"`
	AfterSilence int `json:"repeated_after_an_unknown_outcome"`
	AfterLease   int `json:"repeated_after_a_lease_ended"`
	Late         int `json:"repeated_by_a_process_that_was_frozen"`
	// Unexplained is the number of repeated calls for which the test knows no reason. Forgotten is the number of
	// unexplained repeated calls that Redis may have forgotten.
	Unexplained int `json:"repeated_for_no_reason"`
	Forgotten   int `json:"repeated_since_redis_forgot"`
	// OtherKeys is the number of repeated calls whose idempotency key differs from the key of the first
	// call.
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

// A tolerance for the comparison of times. A claim is made before its call, so the next call may arrive up to slack
// earlier than one lease after the previous call. A process that was frozen may send a call that it had already
// prepared, up to slack after it continues. A call arrives at most slack after it is sent.
const slack = time.Second

// faultRecord is a fault that happened during the run. The field member is the name of the process, or "" if the fault
// concerns all members because Redis was killed or the machine paused the test.
type faultRecord struct {
	member string
	at     time.Time
	// The time at which a frozen process continued; zero for other faults.
	thaw time.Time
}

// mayLackRecord reports whether the fault h may have prevented the record that a call had ended. A process
// tries to write the record of a call's end for the time of a lease. On a busy machine, the provider may receive a call
// after the calling process was killed.
func (h faultRecord) mayLackRecord(c call, lease time.Duration) bool {
	return (h.member == "" || h.member == c.member) && !h.at.Before(c.at.Add(-slack)) && h.at.Before(c.at.Add(lease))
}

// isLate reports whether a process had prepared a call before it was frozen.
func (h faultRecord) isLate(c call) bool {
	return !h.thaw.IsZero() && h.member == c.member && c.at.After(h.thaw) && c.at.Before(h.thaw.Add(slack))
}

// weigh counts the calls of each message by reason.
func (l *Ledger) weigh(calls map[string][]call, messages int, lease time.Duration, harms []faultRecord, mayForget bool) {
	l.Messages = messages
	heard := 0
	for _, all := range calls {
		l.Calls += len(all)
		answered := !all[0].noAnswer
		for i := 1; i < len(all); i++ {
			l.repeat(all[0], all[i-1], all[i], lease, harms, mayForget)
			answered = answered || !all[i].noAnswer
		}
		if answered {
			heard++
		}
	}
	l.Lost = messages - heard
}

// repeat counts the reason why a call was repeated.
func (l *Ledger) repeat(first, before, again call, lease time.Duration, harms []faultRecord, mayForget bool) {
	l.Repeated++
	if again.key != first.key || again.key == "" {
		l.OtherKeys++
	}
	switch {
	case before.noAnswer:
		l.AfterSilence++
	case again.at.Sub(before.at) >= lease-slack && slices.ContainsFunc(harms, func(h faultRecord) bool { return h.mayLackRecord(before, lease) }):
		l.AfterLease++
	case slices.ContainsFunc(harms, func(h faultRecord) bool { return h.isLate(again) }):
		l.Late++
	case mayForget:
		l.Forgotten++
	default:
		l.Unexplained++
	}
}
