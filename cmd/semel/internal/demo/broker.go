package demo

import (
	"encoding/json"
	"maps"
	"slices"
)

// broker delivers messages to one consumer at least once. If the consumer's process dies, the broker
// delivers the unacked messages again, in the original order.
type broker struct {
	bodies  []json.RawMessage
	crashes map[int]Point // planned crashes, by the position of the delivery
	// waiting has the positions of messages that the broker must deliver, in ascending order.
	waiting   []int
	unsettled map[int]bool
	// times is how often the message at each position was delivered.
	times []int
	// The field crashed is the number of killed processes.
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

// The method take returns the next deliveries. The number of deliveries is limited by the parameter most and
// by the window of unacked deliveries.
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

// The method settle acks deliveries.
func (b *broker) settle(positions []int) {
	for _, at := range positions {
		delete(b.unsettled, at)
	}
}

// The method back makes the broker deliver unacked messages again.
func (b *broker) back(positions []int) {
	for _, at := range positions {
		if b.unsettled[at] {
			delete(b.unsettled, at)
			b.waiting = append(b.waiting, at)
		}
	}
	slices.Sort(b.waiting)
}

// died records that the consumer's process died at the planned crash. The planned crash does not happen
// again.
func (b *broker) died(crash int) {
	b.crashed++
	delete(b.crashes, crash)
	b.back(slices.Collect(maps.Keys(b.unsettled)))
}

// The method empty reports whether all messages are acked.
func (b *broker) empty() bool { return len(b.waiting)+len(b.unsettled) == 0 }

// The method settled returns the number of acked messages.
func (b *broker) settled() int { return len(b.bodies) - len(b.waiting) - len(b.unsettled) }

// The method delivered returns the number of deliveries, and the number of redeliveries among them.
func (b *broker) delivered() (all, again int) {
	for _, n := range b.times {
		all += n
		again += max(n-1, 0)
	}
	return all, again
}
