package machine

import (
	"cmp"
	"slices"
)

// Load describes the items that a machine has in memory.
type Load struct {
	// Messages is the number of deliveries and claimed rows in memory. Bytes is their size.
	Messages int
	Bytes    int64
	// Since is the arrival time of the oldest message. If Messages is 0, Since is undefined.
	Since Time
	// Queued, Flying, Held, Riding and Settling divide Messages by state: waiting for a worker, in a
	// transaction, waiting for a time, waiting for an earlier copy, being acked.
	Queued, Flying, Held, Riding, Settling int
	// Lanes is the number of assigned lanes. Paused is the number of lanes in which later messages wait for an earlier
	// message.
	Lanes, Paused int
	// Workers is the number of workers. Stuck is the number of workers whose handler or callback has exceeded
	// its timeout.
	Workers, Stuck int
	// Serial reports that batches run one at a time, because concurrent batches waited for one another's
	// locks.
	Serial bool
}

// wave is the arrival time of a group of items: of one item and of all later items before the next wave.
type wave struct {
	arrival uint64
	came    Time
}

// recordArrival records the arrival time of the next items. Waves older than the oldest item are removed when they are
// more than half of all waves.
func (m *Machine) recordArrival() {
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

// Load returns the current load.
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
