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
	// undelivered has the positions of messages that the broker must deliver, in ascending order.
	undelivered []int
	unacked     map[int]bool
	// deliveryCounts is how often the message at each position was delivered.
	deliveryCounts []int
	// crashCount is the number of killed processes.
	crashCount int
}

func newBroker(p plan) (*broker, error) {
	b := &broker{crashes: map[int]Point{}, unacked: map[int]bool{}, deliveryCounts: make([]int, len(p.deliveries))}
	for i, d := range p.deliveries {
		body, err := json.Marshal(d)
		if err != nil {
			return nil, err
		}
		b.bodies = append(b.bodies, body)
		b.undelivered = append(b.undelivered, i)
	}
	for _, c := range p.crashes {
		b.crashes[c.Delivery] = c.Point
	}
	return b, nil
}

// nextDeliveries returns the next deliveries. The number of deliveries is limited by the parameter most and
// by the window of unacked deliveries.
func (b *broker) nextDeliveries(most int) []delivery {
	n := min(most, window-len(b.unacked), len(b.undelivered))
	if n <= 0 {
		return nil
	}
	var taken []delivery
	for _, at := range b.undelivered[:n] {
		taken = append(taken, delivery{Position: at, Before: b.deliveryCounts[at], Body: b.bodies[at], Crash: b.crashes[at]})
		b.deliveryCounts[at]++
		b.unacked[at] = true
	}
	b.undelivered = b.undelivered[n:]
	return taken
}

func (b *broker) ack(positions []int) {
	for _, at := range positions {
		delete(b.unacked, at)
	}
}

// redeliver makes the broker deliver unacked messages again.
func (b *broker) redeliver(positions []int) {
	for _, at := range positions {
		if b.unacked[at] {
			delete(b.unacked, at)
			b.undelivered = append(b.undelivered, at)
		}
	}
	slices.Sort(b.undelivered)
}

// recordCrash records that the consumer's process died at the planned crash. The planned crash does not happen
// again.
func (b *broker) recordCrash(crash int) {
	b.crashCount++
	delete(b.crashes, crash)
	b.redeliver(slices.Collect(maps.Keys(b.unacked)))
}

// isEmpty reports whether all messages are acked.
func (b *broker) isEmpty() bool { return len(b.undelivered)+len(b.unacked) == 0 }

// ackedCount returns the number of acked messages.
func (b *broker) ackedCount() int { return len(b.bodies) - len(b.undelivered) - len(b.unacked) }

// countDeliveries returns the number of deliveries, and the number of redeliveries among them.
func (b *broker) countDeliveries() (all, again int) {
	for _, n := range b.deliveryCounts {
		all += n
		again += max(n-1, 0)
	}
	return all, again
}
