package demo

import (
	"encoding/json"
	"maps"
	"slices"
)

// broker delivers to one consumer, at least once: what is not settled when the
// consumer dies is delivered again, in its old place.
type broker struct {
	bodies  []json.RawMessage
	crashes map[int]Point // to come, by delivery
	// waiting are the positions to deliver, ascending.
	waiting   []int
	unsettled map[int]bool
	// times is how often each position was delivered.
	times []int
	// crashed is how many processes died.
	crashed int
}

func newBroker(p plan) (*broker, error) {
	b := &broker{crashes: map[int]Point{}, unsettled: map[int]bool{}, times: make([]int, len(p.deliveries))}
	for i, d := range p.deliveries {
		body, err := json.Marshal(d)
		if err != nil {
			return nil, err
		}
		b.bodies = append(b.bodies, body)
		b.waiting = append(b.waiting, i)
	}
	for _, c := range p.crashes {
		b.crashes[c.Delivery] = c.Point
	}
	return b, nil
}

// take returns what is to be delivered now: at most so many, and no more than
// the window leaves room for.
func (b *broker) take(most int) []delivery {
	n := min(most, window-len(b.unsettled), len(b.waiting))
	if n <= 0 {
		return nil
	}
	var taken []delivery
	for _, at := range b.waiting[:n] {
		taken = append(taken, delivery{Position: at, Before: b.times[at], Body: b.bodies[at], Crash: b.crashes[at]})
		b.times[at]++
		b.unsettled[at] = true
	}
	b.waiting = b.waiting[n:]
	return taken
}

// settle forgets deliveries.
func (b *broker) settle(positions []int) {
	for _, at := range positions {
		delete(b.unsettled, at)
	}
}

// back makes unsettled deliveries wait again.
func (b *broker) back(positions []int) {
	for _, at := range positions {
		if b.unsettled[at] {
			delete(b.unsettled, at)
			b.waiting = append(b.waiting, at)
		}
	}
	slices.Sort(b.waiting)
}

// died takes note that the consumer's process died as planned at a point: that
// crash is done with.
func (b *broker) died(crash int) {
	b.crashed++
	delete(b.crashes, crash)
	b.back(slices.Collect(maps.Keys(b.unsettled)))
}

// empty says that everything is settled.
func (b *broker) empty() bool { return len(b.waiting)+len(b.unsettled) == 0 }

// settled is how many deliveries are settled.
func (b *broker) settled() int { return len(b.bodies) - len(b.waiting) - len(b.unsettled) }

// delivered returns how many deliveries there were, and how many of them were
// not the first of their position.
func (b *broker) delivered() (all, again int) {
	for _, n := range b.times {
		all += n
		again += max(n-1, 0)
	}
	return all, again
}
