package consumer

import "time"

// bucket holds how many messages may be taken now: it fills with the limit, and holds
// one second's worth at most. It begins empty, so that the first second has no more than
// its share. Who takes more than was there leaves a debt, which is waited for; of what was
// asked for before there was a limit, no longer than a second.
type bucket struct {
	perSecond int // 0: there is no limit
	tokens    float64
	at        time.Time // when it was filled up last
}

// limit changes how fast it fills.
func (b *bucket) limit(perSecond int, now time.Time) {
	b.perSecond, b.tokens, b.at = max(perSecond, 0), 0, now
}

func (b *bucket) fill(now time.Time) {
	b.tokens = min(b.tokens+now.Sub(b.at).Seconds()*float64(b.perSecond), float64(b.perSecond))
	b.at = now
}

// aShare is the part of a second's worth that is waited for, so that a high limit is
// not taken one by one.
const aShare = 10

// ask says how many messages of most may be taken now, or how long to wait for some.
func (b *bucket) ask(most int, now time.Time) (n int, wait time.Duration) {
	if b.perSecond == 0 {
		return most, 0
	}
	b.fill(now)
	least := float64(max(1, min(most, b.perSecond/aShare)))
	if b.tokens < least {
		// Rounded up: a wait of nothing would be none.
		return 0, time.Duration((least-b.tokens)/float64(b.perSecond)*float64(time.Second)) + time.Nanosecond
	}
	return min(most, int(b.tokens)), 0
}

// take takes n messages out.
func (b *bucket) take(n int) {
	b.tokens = max(b.tokens-float64(n), -float64(b.perSecond))
}
