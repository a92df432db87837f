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
	ChargedGarbage Fate = "charged garbage"  // done, and an answer that nobody can read
	StubbornFirst  Fate = "stubborn charged" // done, and cut, as are all later calls
	StubbornLater  Fate = "stubborn"         // cut, nothing is done, until somebody has asked
)

// common are the fates of which each is as likely as the others.
var common = []Fate{Silent, ChargedSilent, Cut, ChargedCut, Refused, ChargedFailed, TooMany, ChargedGarbage}

// charges reports whether the money is taken.
func (f Fate) charges() bool {
	switch f {
	case Well, ChargedSilent, ChargedCut, ChargedFailed, ChargedGarbage, StubbornFirst:
		return true
	}
	return false
}

// Doubtful reports whether who called cannot know whether the money was taken.
func (f Fate) Doubtful() bool { return f != Well && f != TooMany }

// Fates say how often something happens to a call. What happens is a matter of the seed,
// the reference and how often it was called for, and of nothing else.
type Fates struct {
	Seed uint64
	// PerMille of all calls have one of the common fates.
	PerMille uint64
	// Stubborn, in a million, of all references are cut at every call, half of them after
	// the first took the money: until somebody has asked what became of them, or the
	// window is over. Of half of these, too, who asks is told that nobody can say.
	Stubborn uint64
}

// draw is a number that looks random.
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

// kinds of stubborn references, from 0.
const (
	stubbornCharged = 1 << iota // the first call took the money
	stubbornMute                // who asks is told that nobody can say
	stubbornKinds
)

// stubborn reports whether a reference is, and of which kind.
func (f Fates) stubborn(reference string) (kind uint64, is bool) {
	n := f.draw(reference, 0)
	return n / 1_000_000 % stubbornKinds, n%1_000_000 < f.Stubborn
}

// Mute reports whether who asks for the reference is told that nobody can say.
func (f Fates) Mute(reference string) bool {
	kind, is := f.stubborn(reference)
	return is && kind&stubbornMute != 0
}

// of is the fate of a reference's next call.
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
