package machine

import (
	"cmp"
	"slices"
)

// Load is what a machine has in hand.
type Load struct {
	// Messages are the deliveries and claims that it holds, Bytes their sizes.
	Messages int
	Bytes    int64
	// Since is when the oldest of them came; it has no meaning without Messages.
	Since Time
	// Queued, Flying, Held, Riding and Settling are Messages by what they do: they wait
	// for a worker, share a transaction, wait for a moment, wait for an earlier copy, or
	// are told to the source.
	Queued, Flying, Held, Riding, Settling int
	// Lanes are those that were given, Paused those of them that wait for one of their
	// messages.
	Lanes, Paused int
	// Workers are all, Stuck those whose handler, or callback, goes on after its timeout.
	Workers, Stuck int
	// Serial: batches run one at a time, because they contend with one another.
	Serial bool
}

// wave says when a message came, and that all did that came after it, up to the next
// wave.
type wave struct {
	arrival uint64
	came    Time
}

// came takes note of when what follows comes. Waves before that of the oldest item are
// over, and forgotten when they are half of all.
func (m *Machine) came() {
	first := m.arrivals + 1
	if oldest := m.live.head; oldest != nil {
		first = oldest.arrival
	}
	over := 0
	for over < len(m.waves) && (over+1 == len(m.waves) && m.live.head == nil || over+1 < len(m.waves) && m.waves[over+1].arrival <= first) {
		over++
	}
	if 2*over >= len(m.waves) {
		m.waves = slices.Delete(m.waves, 0, over)
	}
	m.waves = append(m.waves, wave{m.arrivals + 1, m.now})
}

// Load returns what the machine has in hand now.
func (m *Machine) Load() Load {
	l := Load{
		Messages: m.live.count, Bytes: m.bytes,
		Queued: m.inState[queued], Flying: m.inState[inFlight], Held: m.inState[held] + m.inState[awaited], Riding: m.inState[riding],
		Settling: m.inState[settling] + m.inState[copying] + m.inState[skipped],
		Lanes:    len(m.lanes), Paused: m.paused, Workers: len(m.workers), Stuck: m.sticking, Serial: m.serial.on,
	}
	if oldest := m.live.head; oldest != nil {
		after, _ := slices.BinarySearchFunc(m.waves, oldest.arrival+1, func(w wave, arrival uint64) int { return cmp.Compare(w.arrival, arrival) })
		l.Since = m.waves[after-1].came
	}
	return l
}
