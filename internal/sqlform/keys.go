package sqlform

import (
	"crypto/sha256"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/calls"
	"github.com/semel-go/semel/internal/digest"
	"github.com/semel-go/semel/internal/timing"
	"github.com/semel-go/semel/keystore"
	"github.com/semel-go/semel/store"
)

// Key is the stored state of a leased key. Times are microseconds by the store's clock.
type Key struct {
	// Ended is the outcome of the last claim, or 0 if the last claim has not ended.
	Ended              keystore.Event
	Token              store.Token
	First, Until, Over int64
	// Leased is the time when the lease was set, or 0 if an earlier release set it. First is the time of the first
	// claim, or calls.Unknown if the store's clock was ahead at that time.
	Leased            int64
	Started, Finished int
	Fingerprint       semel.Fingerprint
	Result            []byte
}

// Claim returns the answer to a claim. The parameter exists says whether the key exists. The result write is true if
// Claim has changed the key, so that the key must be written.
func (k *Key) Claim(c *keystore.Claim, exists bool, now int64) (a keystore.Answer, write bool) {
	switch {
	case !exists && c.Seen > 0:
		return keystore.Answer{State: keystore.Gone}, false
	case !exists:
		*k = Key{First: now, Fingerprint: c.Fingerprint}
	case k.Fingerprint.Conflicts(c.Fingerprint):
		return k.answer(keystore.Conflict, now), false
	case k.Ended == keystore.Complete:
		return k.answer(keystore.Completed, now), false
	case k.Ended == keystore.Fail:
		return k.answer(keystore.Failed, now), false
	case k.Token == c.Token && k.Ended == 0:
		cut := k.cutAhead(now)
		return k.answer(keystore.Claimed, now), cut // the previous response was lost
	case k.Token == c.Token || k.Ended == 0 && k.Until > now:
		cut := k.cutAhead(now)
		return k.answer(keystore.Held, now), cut
	case c.Seen > 0 && k.Started != c.Seen:
		return k.answer(keystore.Gone, now), false
	}
	k.cutAhead(now)
	k.Started++
	k.Ended, k.Token, k.Leased, k.Until, k.Over = 0, c.Token, now, now+c.Lease.Microseconds(), now+c.Keep.Microseconds()
	return k.answer(keystore.Claimed, now), true
}

// cutAhead shortens a lease that was set while the store's clock was ahead: the lease has the same length but starts
// now. If the first claim was made while the clock was ahead, the time of the first claim is unknown from now on. The
// result is true if cutAhead has changed the key.
func (k *Key) cutAhead(now int64) bool {
	changed := false
	at := k.Leased
	if at == 0 {
		at = k.First
	}
	if isAhead(at, now) {
		if k.Until > at {
			k.Until = now + k.Until - at
		}
		k.Leased, changed = now, true
	}
	if isAhead(k.First, now) {
		k.First, changed = calls.Unknown().UnixMicro(), true
	}
	return changed
}

// isAhead reports whether a time is further in the future than timing.ClockSlack.
func isAhead(at, now int64) bool { return at-now > timing.ClockSlack.Microseconds() }

func (k *Key) answer(s keystore.State, now int64) keystore.Answer {
	a := keystore.Answer{State: s, Started: k.Started, Finished: k.Finished, Since: calls.Ago(microseconds(now - k.First))}
	if s == keystore.Completed || s == keystore.Failed {
		a.Result = k.Result
	}
	if s == keystore.Claimed || s == keystore.Held && k.Ended == 0 {
		a.Left = microseconds(max(k.Until-now, 0))
	}
	return a
}

// Extend extends the lease of a claim. If the claim is not valid, Extend returns false.
func (k *Key) Extend(t store.Token, now int64, lease time.Duration) bool {
	if k.Ended != 0 || k.Token != t {
		return false
	}
	until := now + lease.Microseconds()
	k.Leased, k.Until, k.Over = now, until, max(k.Over, until)
	return true
}

// End records the outcome of a claim.
func (k *Key) End(t store.Token, e *keystore.Ending, now int64) (written, lost bool) {
	switch {
	case k.Token != t:
		return false, true
	case k.Ended == e.Event:
		return false, false // the previous response was lost
	case k.Ended != 0:
		return false, true
	}
	k.Ended, k.Over = e.Event, now+e.Keep.Microseconds()
	if e.Event != keystore.Abandon {
		k.Finished++
	}
	if e.Event != keystore.Release && e.Event != keystore.Abandon || k.Finished == k.Started {
		k.Result = e.Result // without a known outcome, the next claim needs the stored request
	}
	return true, false
}

// Note stores a request (note) with a claim, in the field Result. If the claim is not valid, Note returns false.
func (k *Key) Note(t store.Token, note []byte) bool {
	if k.Ended != 0 || k.Token != t {
		return false
	}
	k.Result = note
	return true
}

// Left reports whether a key with a stored request is abandoned: no process has worked on the key for at least the time
// quiet. The duration in the result is the time for which no process has worked on the key.
func (k *Key) Left(quiet time.Duration, now int64) (time.Duration, bool) {
	since := microseconds(now - k.Until)
	open := k.Ended == 0 || k.Ended == keystore.Release || k.Ended == keystore.Abandon
	return since, k.Result != nil && open && since >= quiet
}

// KeySum returns a hash of the key for the index, because the parts of a key can be long.
func KeySum(k semel.Key) []byte {
	sum := sha256.New()
	digest.Begin(sum, "leased-key/1")
	for _, part := range []string{k.Consumer, k.Source, k.ID} {
		digest.Part(sum, []byte(part))
	}
	return sum.Sum(nil)
}

func microseconds(n int64) time.Duration { return time.Duration(n) * time.Microsecond }
