package simulator

import (
	"math/rand/v2"
	"time"
)

// choices hands out the decisions of a run and remembers them. Made from a
// list it gives that list again, and zeros after its end.
type choices struct {
	random *rand.Rand
	given  []uint32
	next   int
}

// fromSeed returns choices that a seed decides.
func fromSeed(seed uint64) *choices {
	return &choices{random: rand.New(rand.NewPCG(seed, 0x5e3e1))}
}

// fromList returns choices that repeat a list.
func fromList(list []uint32) *choices { return &choices{given: list} }

// below returns a number from 0 to n-1; 0 is the harmless one.
func (c *choices) below(n int) int {
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

// chance is true once in n times; never for n = 0.
func (c *choices) chance(n int) bool {
	return n > 0 && c.below(n+1) == n
}

// often is true in most of n times.
func (c *choices) often(n int) bool { return c.below(n) != n-1 }

// flip is true every other time.
func (c *choices) flip() bool { return c.below(2) == 1 }

// between returns a number from least to most.
func (c *choices) between(least, most int) int { return least + c.below(most-least+1) }

// wait returns a time up to most, more often a short one. It is never zero, so
// that time passes.
func (c *choices) wait(most time.Duration) time.Duration {
	steps := [...]int64{200, 50, 10, 3, 1}
	part := int64(most) / steps[c.below(len(steps))]
	return time.Duration(part*int64(1+c.below(16))/16) + time.Microsecond
}

// used returns the list of what was given out.
func (c *choices) used() []uint32 { return c.given[:min(c.next, len(c.given))] }
