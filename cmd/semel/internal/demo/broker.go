package demo

import (
	"encoding/json"
	"maps"
	"slices"
)

// broker delivers messages to one consumer at least once. If the consumer dies, the broker delivers unacked messages
// again, in their original order.
type broker struct {
	bodies  []json.RawMessage
	crashes map[int]Point // planned crashes, by position
	// waiting are the positions to deliver, ascending.
	waiting   []int
	unsettled map[int]bool
	// times is the number of deliveries of each position.
	times []int
	// crashed is the number of processes that died.
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

// take returns the next deliveries: at most most, and no more than fit into the window.
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

// settle marks deliveries as acked.
func (b *broker) settle(positions []int) {
	for _, at := range positions {
		delete(b.unsettled, at)
	}
}

// back queues unacked deliveries again.
func (b *broker) back(positions []int) {
	for _, at := range positions {
		if b.unsettled[at] {
			delete(b.unsettled, at)
			b.waiting = append(b.waiting, at)
		}
	}
	slices.Sort(b.waiting)
}

// died records that the consumer's process died as planned at a crash, which will not be repeated.
func (b *broker) died(crash int) {
	b.crashed++
	delete(b.crashes, crash)
	b.back(slices.Collect(maps.Keys(b.unsettled)))
}

// empty reports whether all deliveries are acked.
func (b *broker) empty() bool { return len(b.waiting)+len(b.unsettled) == 0 }

// settled returns the number of acked deliveries.
func (b *broker) settled() int { return len(b.bodies) - len(b.waiting) - len(b.unsettled) }

// delivered returns the number of deliveries, and how many of them were redeliveries.
func (b *broker) delivered() (all, again int) {
	for _, n := range b.times {
		all += n
		again += max(n-1, 0)
	}
	return all, again
}
