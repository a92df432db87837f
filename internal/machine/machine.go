// Package machine makes the engine's decisions: step(event, now) → actions. It
// starts no goroutine, reads no clock, holds no lock and does no I/O, so that
// a simulator can order events from a seed and get the same history again.
//
// A delivery (Item) is in exactly one state: queued, in flight, held (waiting
// for a moment), awaited (held for what a newer release knows), riding (on an earlier copy of the same identity), copied to the
// dead letters, skipped or settling.
// Whatever one item waits for has a smaller arrival number, so waits form no
// circle. Laws and decided cases that comments name are those of docs/internals/numbers.md.
package machine

import "math/rand/v2"

// Machine decides for one consumer. It is used by one goroutine.
type Machine struct {
	config Config
	random *rand.Rand
	now    Time
	out    []Action

	lanes   map[string]*lane
	lines   map[uint64]*line // of keys, by route
	spare   []*line          // empty ones
	revokes []*lane          // revoked and not yet released
	workers []worker
	forming int // the worker whose next flight is being formed, -1: none
	// carriers are the first living copies, by identity.
	carriers map[Name]*Item
	// formers are the items that have a former identity to themselves.
	formers  map[Name]*Item
	live     liveList
	waves    []wave      // when the living came; see load.go
	paused   int         // how many lanes are
	sticking int         // how many workers are
	inState  [states]int // how many items are in each
	skipped  []*Item     // to be settled with the next step
	held     heldHeap
	arrivals uint64
	flights  uint64
	bytes    int64
	commits  uint64 // transactions that committed
	outages  uint64 // transactions that the store did not open
	// touched counts the items that steps have looked at or moved, one by one:
	// tests hold it against how many there are.
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
	turn    int // the worker that is asked first where one flies at a time
	// toldNewer counts the items of which it is told that a newer release marked them.
	toldNewer int
	wake      Time // the moment of the last Wake, 0: none
	counts    Counts
}

// New returns a machine that has fetched nothing yet; the first Step, of any
// event, starts it.
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

// Step takes what happened and returns what to do, in order. The slice is
// valid until the next Step. Time never goes back. After Done nothing follows.
func (m *Machine) Step(e Event, now Time) []Action {
	m.now = now
	clear(m.out) // they would keep flights and settlements that are over
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

// Counts returns what became of deliveries so far.
func (m *Machine) Counts() Counts { return m.counts }

// Unsettled returns how many deliveries the machine holds, and their bytes.
func (m *Machine) Unsettled() (messages int, bytes int64) { return m.live.count, m.bytes }

// advance does what has become possible, after every event.
func (m *Machine) advance() {
	m.endSerial()
	m.releaseHeld()
	m.retrySettle()
	m.freeLate()
	m.unclaim()
	m.settleSkipped()
	if m.config.OneWriter { // the next batch waits for what is claimed
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
