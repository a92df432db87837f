// Package machine makes the engine's decisions: step(event, now) → actions. The package starts no goroutine,
// reads no clock, holds no lock and does no I/O, so that a simulator can generate events from a seed and get
// the same history again.
//
// A delivery (Item) is in exactly one state: queued, in a flight, held (waits for a time), awaited (held because a
// newer release marked it), riding (waits for an earlier copy of the same identity), being copied to the dead
// letters, skipped, or being settled. An item only ever waits for items with a smaller arrival number, so waits
// cannot form a cycle. Laws and cases that comments name are listed in docs/internals/numbers.md.
package machine

import "math/rand/v2"

// Machine decides for one consumer. Only one goroutine may use it.
type Machine struct {
	config Config
	random *rand.Rand
	now    Time
	out    []Action

	lanes   map[string]*lane
	lines   map[uint64]*line // lines of keys, by route
	spare   []*line          // empty lines for reuse
	revokes []*lane          // lanes that are revoked but not released
	workers []worker
	forming int // worker whose next flight is being formed; -1 if none
	// carriers are the first copies in memory, by identity.
	carriers map[Name]*Item
	// formers are the items that have reserved a previous identity.
	formers  map[Name]*Item
	live     liveList
	waves    []wave      // arrival times; see load.go
	paused   int         // number of paused lanes
	sticking int         // number of stuck workers
	inState  [states]int // number of items by state
	skipped  []*Item     // to settle in the next step
	held     heldHeap
	arrivals uint64
	flights  uint64
	bytes    int64
	commits  uint64 // number of committed transactions
	outages  uint64 // transactions that the store did not open
	// touched counts the items that steps have examined or moved. Tests compare it with the number of items.
	touched int

	fetch   fetchState
	store   downState
	claims  claimState
	settles settleState
	end     endState
	serial  serialState
	budget  budgetState
	trial   trialState
	breaker breakerState
	turn    int // the worker that is first in turn if one flies at a time
	// toldNewer counts the items for which ReportNewer was made.
	toldNewer int
	wake      Time // time of the last Wake; 0 if none
	counts    Counts
}

// New returns a machine that has fetched nothing yet. The first Step, with any event, starts it.
func New(c Config) *Machine {
	m := &Machine{
		config:   c,
		random:   rand.New(rand.NewPCG(c.Seed, 0x53656d656c)),
		lanes:    make(map[string]*lane),
		lines:    make(map[uint64]*line),
		forming:  -1,
		carriers: make(map[Name]*Item),
		formers:  make(map[Name]*Item),
		workers:  make([]worker, c.Workers),
	}
	m.claims.lane, m.claims.lines, m.claims.most = &lane{name: InboxLane()}, make(map[uint64]*line), m.claimsAFlight()
	m.budget.empty = -c.RetrySaved
	for i := range m.workers {
		m.workers[i] = worker{number: i, limit: c.Most, own: [ownLines]*line{newLine(false), newLine(false)}}
	}
	return m
}

// Step handles an event and returns the actions to carry out, in order. The slice is valid until the next Step.
// now must not decrease. After Done there are no more actions.
func (m *Machine) Step(e Event, now Time) []Action {
	m.now = now
	clear(m.out) // drop references to ended flights and settlements
	m.out = m.out[:0]
	if m.end.done {
		return nil
	}
	switch e := e.(type) {
	case Given:
		m.given(e.Lane)
	case Revoking:
		m.revoking(e.Lane)
	case Lost:
		m.lost(e.Lane)
	case Fetched:
		m.fetched(e)
	case Claimed:
		m.claimed(e)
	case Due:
		m.due(m.now)
	case Marked:
		m.marked(e)
	case Ran:
		m.ran(e)
	case Stuck:
		m.stuck(e)
	case Ended:
		m.ended(e)
	case Settled:
		m.settled(e)
	case Stop:
		m.stop()
	case Timer:
		m.wake = 0
	}
	m.advance()
	return m.out
}

// Counts returns how deliveries have ended so far.
func (m *Machine) Counts() Counts { return m.counts }

// Unsettled returns the number of deliveries in memory, and their bytes.
func (m *Machine) Unsettled() (messages int, bytes int64) { return m.live.count, m.bytes }

// advance starts whatever has become possible, after every event.
func (m *Machine) advance() {
	m.endSerial()
	m.releaseHeld()
	m.retrySettle()
	m.freeLate()
	m.unclaim()
	m.settleSkipped()
	if m.config.OneWriter { // the next batch waits for the claim
		m.startClaim()
	}
	m.startFlights()
	m.answerDown()
	m.flushSettle()
	m.unclaim()
	m.releaseLanes()
	m.startClaim()
	m.startFetch()
	m.limitFetch()
	m.tellFull()
	m.finish()
	m.setWake()
}
