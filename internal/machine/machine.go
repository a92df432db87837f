// Package machine makes the engine's decisions: step(event, now) → actions. The package starts no goroutine, reads no
// clock, holds no lock and does no I/O. So a simulator can generate events from a seed and gets the same sequence of
// decisions each time.
//
// An Item is a delivery or a claimed row. A Flight is a batch that is being processed. An Item is in exactly one state:
// queued, in a flight, held (waits for a time), awaited (waits for a time because a newer release wrote its marker),
// riding (waits for an earlier copy of the same identity), being copied to the dead-letter topic, skipped, or being
// settled (acked or nacked). An item only waits for items with a smaller arrival number, so waits cannot form a cycle.
// The laws and cases that comments name are listed in docs/internals/numbers.md.
package machine

import "math/rand/v2"

// Machine makes the decisions for one consumer. Only one goroutine may use a Machine.
type Machine struct {
	config Config
	random *rand.Rand
	now    Time
	out    []Action

	lanes   map[string]*lane
	lines   map[uint64]*line // queues of keys, by route
	spare   []*line          // empty queues for reuse
	revokes []*lane          // revoked lanes that are not released yet
	workers []worker
	forming int // worker whose next batch is being formed; -1 if none
	// carriers contains the first copies in memory, by identity.
	carriers map[Name]*Item
	// formers contains the items that have reserved a previous identity.
	formers  map[Name]*Item
	live     liveList
	waves    []wave      // arrival times; see load.go
	paused   int         // number of paused lanes
	sticking int         // number of stuck workers
	inState  [states]int // number of items by state
	skipped  []*Item     // acked in the next step
	held     heldHeap
	arrivals uint64
	flights  uint64
	bytes    int64
	commits  uint64 // number of committed transactions
	outages  uint64 // number of transactions that the store did not open
	// touched is the number of items that calls of Step have examined or moved. Tests compare touched with the number
	// of items.
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
	turn    int // the worker whose turn it is while batches run one at a time
	// toldNewer is the number of waiting items for which ReportNewer was made.
	toldNewer int
	wake      Time // time of the last Wake; 0 if there is none
	counts    Counts
}

// New returns a machine that has fetched no message yet. The first call of Step, with any event, starts the machine.
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
	m.claims.lane, m.claims.lines, m.claims.prefetchLimit = &lane{name: InboxLane()}, make(map[uint64]*line), m.claimsAFlight()
	m.budget.empty = -c.RetrySaved
	for i := range m.workers {
		m.workers[i] = worker{number: i, batchLimit: c.Most, unorderedLines: [ownLines]*line{newLine(false), newLine(false)}}
	}
	return m
}

// Step handles an event and returns the actions that the engine must carry out, in order. The returned slice is valid
// until the next Step. The parameter now must not decrease. After Done, Step returns no actions.
func (m *Machine) Step(e Event, now Time) []Action {
	m.now = now
	clear(m.out) // drop references to ended batches and settlements
	m.out = m.out[:0]
	if m.end.done {
		return nil
	}
	switch e := e.(type) {
	case Given:
		m.handleGiven(e.Lane)
	case Revoking:
		m.handleRevoking(e.Lane)
	case Lost:
		m.removeLane(e.Lane)
	case Fetched:
		m.handleFetched(e)
	case Claimed:
		m.handleClaimed(e)
	case Due:
		m.recordDue(m.now)
	case Marked:
		m.handleMarked(e)
	case Ran:
		m.handleRan(e)
	case Stuck:
		m.handleStuck(e)
	case Ended:
		m.handleEnded(e)
	case Settled:
		m.handleSettled(e)
	case Stop:
		m.stop()
	case Timer:
		m.wake = 0
	}
	m.advance()
	return m.out
}

// Counts returns the number of deliveries that have ended in each way so far.
func (m *Machine) Counts() Counts { return m.counts }

// Unsettled returns the number and the size of the deliveries in memory.
func (m *Machine) Unsettled() (messages int, bytes int64) { return m.live.count, m.bytes }

// advance starts everything that has become possible. The method Step calls the method advance after every event.
func (m *Machine) advance() {
	m.endSerial()
	m.releaseHeld()
	m.retrySettle()
	m.freeLate()
	m.unclaim()
	m.settleSkipped()
	if m.config.OneWriter { // the next batch waits for the running claim
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
