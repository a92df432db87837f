package provider

import (
	"encoding/binary"
	"hash/fnv"
	"time"
)

// Fate is what the provider does with a call.
type Fate string

// The fates. With a fate that has Charged in its name, and with StubbornFirst, the provider charges the payment before
// it fails.
const (
	Well           Fate = ""
	Silent         Fate = "silent"           // no answer, nothing is charged
	ChargedSilent  Fate = "charged silent"   // charged, but no answer
	Cut            Fate = "cut"              // the connection is cut, nothing is charged
	ChargedCut     Fate = "charged cut"      // charged, then the connection is cut
	Refused        Fate = "refused"          // 503, nothing is charged
	ChargedFailed  Fate = "charged failed"   // charged, but 500
	TooMany        Fate = "too many"         // 429 with Retry-After, nothing is charged
	ChargedGarbage Fate = "charged garbage"  // charged, but an unreadable answer
	StubbornFirst  Fate = "stubborn charged" // charged and cut; all later calls are also cut
	StubbornLater  Fate = "stubborn"         // cut without a charge, until the caller queries the outcome
)

// The fates that Fates.PerMille covers, all with the same probability.
var common = []Fate{Silent, ChargedSilent, Cut, ChargedCut, Refused, ChargedFailed, TooMany, ChargedGarbage}

func (f Fate) chargesPayment() bool {
	switch f {
	case Well, ChargedSilent, ChargedCut, ChargedFailed, ChargedGarbage, StubbornFirst:
		return true
	}
	return false
}

// Doubtful reports whether the caller cannot know if the payment was charged.
func (f Fate) Doubtful() bool { return f != Well && f != TooMany }

// Fates has the probabilities of the fates: the ways in which the provider reacts to a call. The fate of a call depends
// only on the seed, the reference and the number of calls for this reference.
type Fates struct {
	Seed uint64
	// PerMille is the number of calls in a thousand that have one of the common fates.
	PerMille uint64
	// Stubborn is the number of references in a million whose calls are all cut, until the caller queries the outcome
	// or the window ends. For half of the stubborn references, the first call charges the payment. For half of the
	// stubborn references, the provider answers a query with "unknown".
	Stubborn uint64
}

// draw returns a pseudo-random number for the n-th call of a reference.
func (f Fates) draw(reference string, n int) uint64 {
	h := fnv.New64a()
	_, _ = h.Write(binary.LittleEndian.AppendUint64(nil, f.Seed))
	_, _ = h.Write(binary.LittleEndian.AppendUint64(nil, uint64(n)))
	_, _ = h.Write([]byte(reference))
	x := h.Sum64()
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	return x ^ x>>33
}

// Bits that describe the kind of a stubborn reference, whose calls are all cut.
const (
	stubbornCharged = 1 << iota // the first call charges the payment
	stubbornMute                // the answer to a query is "unknown"
	stubbornKinds
)

// isStubborn reports whether all calls of a reference are cut (see Fates.Stubborn), and the kind of the
// reference.
func (f Fates) isStubborn(reference string) (kind uint64, is bool) {
	n := f.draw(reference, 0)
	return n / 1_000_000 % stubbornKinds, n%1_000_000 < f.Stubborn
}

// Mute reports whether the provider answers a query about the reference with "unknown".
func (f Fates) Mute(reference string) bool {
	kind, is := f.isStubborn(reference)
	return is && kind&stubbornMute != 0
}

func (f Fates) nextFate(name string, r *reference, now time.Time, window time.Duration) Fate {
	if kind, is := f.isStubborn(name); is && !r.asked && now.Sub(r.first) < window {
		if kind&stubbornCharged != 0 && r.calls == 0 {
			return StubbornFirst
		}
		return StubbornLater
	}
	n := f.draw(name, r.calls+1)
	if n%1000 < f.PerMille {
		return common[n/1000%uint64(len(common))]
	}
	return Well
}
