package control

import "time"

// bucket is a token bucket. The bucket gains tokens at the rate of the limit and has at most the tokens of one second.
// A bucket begins empty, so that the first second has no more messages than later seconds. If more messages are taken
// than the bucket has tokens, the bucket gets a debt of at most one second, which delays the next messages.
type bucket struct {
	perSecond int // 0 means that there is no limit
	tokens    float64
	at        time.Time // when the bucket was filled last
}

// limit sets the rate of the bucket.
func (b *bucket) limit(perSecond int, now time.Time) {
	b.perSecond, b.tokens, b.at = max(perSecond, 0), 0, now
}

// fill adds the tokens of the time since the last call.
func (b *bucket) fill(now time.Time) {
	b.tokens = min(b.tokens+now.Sub(b.at).Seconds()*float64(b.perSecond), float64(b.perSecond))
	b.at = now
}

// aShare limits the number of small fetches under a high limit: a wait ends when a tenth of the messages of
// one second may be taken.
const aShare = 10

// ask returns how many messages may be taken now. The parameter most is an upper limit for the result. If no message
// may be taken, ask returns how long to wait.
func (b *bucket) ask(most int, now time.Time) (n int, wait time.Duration) {
	if b.perSecond == 0 {
		return most, 0
	}
	b.fill(now)
	least := float64(max(1, min(most, b.perSecond/aShare)))
	if b.tokens < least {
		// The wait is rounded up, because 0 would mean no wait.
		return 0, time.Duration((least-b.tokens)/float64(b.perSecond)*float64(time.Second)) + time.Nanosecond
	}
	return min(most, int(b.tokens)), 0
}

// take removes the tokens of n messages.
func (b *bucket) take(n int) {
	b.tokens = max(b.tokens-float64(n), -float64(b.perSecond))
}
