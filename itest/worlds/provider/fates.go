package provider

import (
	"encoding/binary"
	"hash/fnv"
	"time"
)

// Fate is what happens to a call.
type Fate string

// The fates. Those with Charged in their name take the money first.
const (
	Well           Fate = ""
	Silent         Fate = "silent"           // no answer, nothing is done
	ChargedSilent  Fate = "charged silent"   // done, and no answer
	Cut            Fate = "cut"              // the connection ends, nothing is done
	ChargedCut     Fate = "charged cut"      // done, and the connection ends
	Refused        Fate = "refused"          // 503, nothing is done
	ChargedFailed  Fate = "charged failed"   // done, and 500
	TooMany        Fate = "too many"         // 429 with Retry-After, nothing is done
	ChargedGarbage Fate = "charged garbage"  // done, and an unreadable answer
	StubbornFirst  Fate = "stubborn charged" // done, and cut, as are all later calls
	StubbornLater  Fate = "stubborn"         // cut, nothing is done, until the caller has asked
)

// common are the fates that are equally likely.
var common = []Fate{Silent, ChargedSilent, Cut, ChargedCut, Refused, ChargedFailed, TooMany, ChargedGarbage}

// charges reports whether the fate takes the money.
func (f Fate) charges() bool {
	switch f {
	case Well, ChargedSilent, ChargedCut, ChargedFailed, ChargedGarbage, StubbornFirst:
		return true
	}
	return false
}

// Doubtful reports whether the caller cannot know if the money was taken.
func (f Fate) Doubtful() bool { return f != Well && f != TooMany }

// Fates are the probabilities of fates. The fate of a call depends only on the seed, the
// reference and the number of calls for it.
type Fates struct {
	Seed uint64
	// PerMille of all calls have one of the common fates.
	PerMille uint64
	// Stubborn is the number of references in a million whose calls are all cut, until the
	// caller asks what happened to them or the window ends. Half of them take the money at the
	// first call. For half of them the provider answers a question with "unknown".
	Stubborn uint64
}

// draw returns a pseudo-random number.
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

// The kinds of stubborn references, from 0.
const (
	stubbornCharged = 1 << iota // the first call took the money
	stubbornMute                // questions get the answer "unknown"
	stubbornKinds
)

// stubborn reports whether a reference is stubborn, and of which kind it is.
func (f Fates) stubborn(reference string) (kind uint64, is bool) {
	n := f.draw(reference, 0)
	return n / 1_000_000 % stubbornKinds, n%1_000_000 < f.Stubborn
}

// Mute reports whether the provider answers "unknown" to questions about the reference.
func (f Fates) Mute(reference string) bool {
	kind, is := f.stubborn(reference)
	return is && kind&stubbornMute != 0
}

// of returns the fate of the next call for a reference.
func (f Fates) of(name string, r *reference, now time.Time, window time.Duration) Fate {
	if kind, is := f.stubborn(name); is && !r.asked && now.Sub(r.first) < window {
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
