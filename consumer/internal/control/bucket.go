package control

import "time"

// bucket is a token bucket: it fills at the rate of the limit, and holds the messages of one second
// at most. bucket begins empty, so that the first second has no more than its share. Taking more
// than it holds leaves a debt, of one second at most, which delays the next messages.
type bucket struct {
	perSecond int // 0: there is no limit
	tokens    float64
	at        time.Time // when it was filled last
}

// limit changes the rate.
func (b *bucket) limit(perSecond int, now time.Time) {
	b.perSecond, b.tokens, b.at = max(perSecond, 0), 0, now
}

// fill adds what has accrued since the last call.
func (b *bucket) fill(now time.Time) {
	b.tokens = min(b.tokens+now.Sub(b.at).Seconds()*float64(b.perSecond), float64(b.perSecond))
	b.at = now
}

// aShare: a wait ends when a tenth of the messages of one second may be taken, so that a high limit does not cause
// many small fetches.
const aShare = 10

// ask returns how many messages may be taken now, at most most, or how long to wait for some.
func (b *bucket) ask(most int, now time.Time) (n int, wait time.Duration) {
	if b.perSecond == 0 {
		return most, 0
	}
	b.fill(now)
	least := float64(max(1, min(most, b.perSecond/aShare)))
	if b.tokens < least {
		// Rounded up: 0 would mean no wait.
		return 0, time.Duration((least-b.tokens)/float64(b.perSecond)*float64(time.Second)) + time.Nanosecond
	}
	return min(most, int(b.tokens)), 0
}

// take removes n messages.
func (b *bucket) take(n int) {
	b.tokens = max(b.tokens-float64(n), -float64(b.perSecond))
}
