package chance

import (
	"math/rand/v2"
	"time"
)

// Choices makes the random decisions of a run and records them. A Choices that was made from a list returns the numbers
// of the list one after the other, and then only zeros.
type Choices struct {
	random *rand.Rand
	given  []uint32
	next   int
}

// FromSeed returns Choices that depend only on the seed.
func FromSeed(seed uint64) *Choices {
	return &Choices{random: rand.New(rand.NewPCG(seed, 0x5e3e1))}
}

// FromList returns Choices that return the numbers of a list.
func FromList(list []uint32) *Choices { return &Choices{given: list} }

// Below returns a number from 0 to n-1. By convention, 0 means the harmless decision.
func (c *Choices) Below(n int) int {
	if n <= 1 {
		return 0
	}
	c.next++
	if c.random != nil {
		v := c.random.IntN(n)
		c.given = append(c.given, uint32(v))
		return v
	}
	if c.next > len(c.given) {
		return 0
	}
	return int(c.given[c.next-1]) % n
}

// Chance returns true in one of n+1 cases on average. For n = 0 the result is always false.
func (c *Choices) Chance(n int) bool {
	return n > 0 && c.Below(n+1) == n
}

// Often returns false in one of n cases on average.
func (c *Choices) Often(n int) bool { return c.Below(n) != n-1 }

// Flip returns true in half of all cases on average.
func (c *Choices) Flip() bool { return c.Below(2) == 1 }

// Between returns a number from the parameter least to the parameter most.
func (c *Choices) Between(least, most int) int { return least + c.Below(most-least+1) }

// Wait returns a duration that is at most the parameter most; short durations are more frequent. The result is never
// zero, so that time always passes.
func (c *Choices) Wait(most time.Duration) time.Duration {
	steps := [...]int64{200, 50, 10, 3, 1}
	part := int64(most) / steps[c.Below(len(steps))]
	return time.Duration(part*int64(1+c.Below(16))/16) + time.Microsecond
}

// Used returns the decisions so far, as a list for FromList.
func (c *Choices) Used() []uint32 { return c.given[:min(c.next, len(c.given))] }
