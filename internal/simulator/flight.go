package simulator

import (
	"slices"
	"time"

	"github.com/semel-go/semel/faults"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/internal/simulator/model"
	"github.com/semel-go/semel/internal/simulator/plan"
	"github.com/semel-go/semel/store"
)

// phase is what a flight is doing.
type phase uint8

const (
	beginning phase = iota
	begun
	running
	ran
	committing
	rollingBack
)

// flight is an open flight of a process.
type flight struct {
	p        *process
	of       *machine.Flight
	phase    phase
	tx       *model.Transaction
	verdicts []store.Verdict
	call     machine.Run
	done     int
	// failed: a handler failed in this flight.
	failed  bool
	failure machine.Failure
	stop    bool
	abort   bool
	serial  bool // it needs the consumer's lock
	stuck   bool
	killed  bool
	// generation is what its process knew to be active when it began, store what it has
	// marked in.
	generation int
	store      *model.Store
	ranAt      time.Duration
	trim       []int
	lost       bool // the keeper has found that a claim of its is another's
	// known are verdicts on claims that stood before the transaction; nil: not
	// looked yet.
	known []store.Verdict
	// following are the entries that were their streams' next when the marks were answered;
	// freed: its commit has freed rows.
	following []bool
	freed     bool
	// started is what its row knew when the start of its call was committed; callEnd what is
	// known of the call when its claim is ended; sent are the tokens of its ends, by entry.
	started   store.CallStarted
	startedAt time.Duration
	callEnd   store.CallOutcome
	sent      map[int]uint64
}

func handOf(i *machine.Item) *handed { return i.Handle.(*handed) }

func (f *flight) message(entry int) *model.Message {
	return handOf(f.of.Entries[entry].Item).delivery.Message
}

// open begins a flight's transaction.
func (p *process) open(a machine.Begin) {
	f := &flight{p: p, of: a.Flight, serial: a.Serial, generation: p.generation}
	p.flights = append(p.flights, f)
	p.soon(func() { f.begin(p.w.now + markLock) })
	if p.w.hurt(plan.TroubleRevoke) {
		p.soon(p.w.riders)
	}
}

// fail answers a Begin that left nothing open.
func (f *flight) fail(c store.Class) { f.refuse(machine.Marked{Class: c}) }

func (f *flight) refuse(e machine.Marked) {
	e.Flight = f.of
	f.p.soon(func() {
		f.drop()
		f.p.feed(e)
	})
}

// drop takes f off the open flights.
func (f *flight) drop() {
	f.p.last = f
	f.p.flights = slices.DeleteFunc(f.p.flights, func(g *flight) bool { return g == f })
}

// begin begins a flight in its generation.
func (f *flight) begin(deadline time.Duration) {
	f.within(func() { f.lock(deadline) })
}

// lock takes the locks of the marks, or waits for them until the deadline.
func (f *flight) lock(deadline time.Duration) {
	w := f.p.w
	if w.store.Down || f.closedOut() {
		f.fail(store.ClassDown)
		return
	}
	if w.hurt(plan.TroubleBegin) {
		c := []store.Class{store.ClassContended, store.ClassDown}[w.choices.Below(2)]
		w.fault("begin fails", "%s", c.String())
		f.fail(c)
		return
	}
	if !f.lookAhead() {
		return
	}
	if f.outside() {
		f.beginOutside()
		return
	}
	if f.serial && w.store.Serial != nil && w.store.Serial.Open {
		// The consumer's lock is awaited before any lock time-out is set.
		w.store.Waiting = append(w.store.Waiting, func() {
			if !f.p.over {
				f.begin(w.now + markLock)
			}
		})
		return
	}
	busy, held := f.busy(), f.streamsHeld()
	if (len(busy) > 0 || held) && w.now < deadline {
		f.waitForLocks(deadline)
		return
	}
	if len(busy) > 0 {
		w.coverage.Add("fault", "copy busy")
		if len(f.of.Entries) > 1 && !w.plan.Named || w.choices.Flip() {
			f.refuse(machine.Marked{Class: store.ClassContended, CopyBusy: true})
			return
		}
	}
	if held { // a store that has waited for it in vain cannot go on
		w.coverage.Add("fault", "stream held elsewhere")
		f.refuse(machine.Marked{Class: store.ClassContended, CopyBusy: true})
		return
	}
	f.mark(busy)
}

// busy returns the entries whose identity somebody else has locked.
func (f *flight) busy() []int {
	var busy []int
	for i, e := range f.of.Entries {
		holder := f.p.w.store.Holder(identity(e.Item), formerOf(e.Item))
		if e.Unmarked || holder == nil || handOf(e.Item).claim != nil {
			continue
		}
		busy = append(busy, i)
		if holder.By != nil && holder.By != f.p {
			f.p.w.coverage.Add("fault", "copy under way in another process")
		}
	}
	return busy
}

func (f *flight) waitForLocks(deadline time.Duration) {
	w := f.p.w
	asked := false
	look := func() {
		if !asked && !f.p.over {
			asked = true
			f.begin(deadline)
		}
	}
	w.store.Waiting = append(w.store.Waiting, look)
	w.agenda.Add(deadline, look)
}

// mark writes the marks and answers.
func (f *flight) mark(busy []int) {
	w := f.p.w
	f.tx = w.store.Opened(&model.Transaction{Open: true, By: f.p, Replays: f.p.reads()})
	f.store = w.store
	if f.serial {
		w.store.Serial = f.tx
	}
	for i, e := range f.of.Entries {
		v := store.Verdict{Kind: store.Fresh}
		switch {
		case e.Unmarked:
		case handOf(e.Item).claim != nil:
			v = f.look(i)
		case slices.Contains(busy, i):
			v.Kind = store.Busy
		default:
			v = f.markOne(i, e)
		}
		f.verdicts = append(f.verdicts, v)
	}
	f.turns()
	f.lookBehind()
	f.lookOld()
	f.asForeseen()
	if f.p.diesAt(faults.AfterMark) {
		return
	}
	f.p.soon(func() {
		f.phase = begun
		f.p.feed(machine.Marked{Flight: f.of, Verdicts: slices.Clone(f.verdicts)})
	})
}

// identity returns what the store knows an item by.
func identity(i *machine.Item) string { return handOf(i).delivery.Message.ID }

// kill cuts the connection; the handler goes on until it ends by itself.
func (f *flight) kill() {
	f.killed = true
	if f.outside() { // it has no connection
		return
	}
	f.tx.Cut = true
	f.p.w.end(f.tx)
}

func (f *flight) rollback() {
	f.phase = rollingBack
	f.p.soon(func() {
		f.p.w.end(f.tx)
		f.p.soon(func() {
			f.drop()
			f.p.feed(machine.Ended{Flight: f.of, Outcome: store.NotCommitted, Culprit: -1})
		})
	})
}
