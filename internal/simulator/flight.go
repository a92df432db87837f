package simulator

import (
	"fmt"
	"slices"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/faults"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/internal/simulator/model"
	"github.com/semel-go/semel/internal/simulator/plan"
	"github.com/semel-go/semel/store"
)

// phase is the phase of a batch.
type phase uint8

const (
	beginning phase = iota
	begun
	running
	ran
	committing
	rollingBack
)

// flight is a batch that a process is executing (see machine.Flight).
type flight struct {
	p        *process
	of       *machine.Flight
	phase    phase
	tx       *model.Transaction
	verdicts []store.Verdict
	call     machine.Run
	done     int
	// The field failed is true if a handler of the batch failed.
	failed  bool
	failure machine.Failure
	stop    bool
	abort   bool
	serial  bool // true if the batch needs the consumer's lock
	stuck   bool
	killed  bool
	// The field generation is the generation that the process believed to be active at the start. The field store is
	// the store to which the batch wrote its markers.
	generation int
	store      *model.Store
	ranAt      time.Duration
	trim       []int
	lost       bool // true if an extension of the leases found a lost claim
	// claimVerdicts contains the store's answers about claims from the time before the transaction, or nil if the
	// claims were not checked yet.
	claimVerdicts []store.Verdict
	// nextVersions contains the entries that had the next version of their stream when the markers were written.
	// unblocked is true if the commit has unblocked rows.
	nextVersions []bool
	unblocked    bool
	// callStart is the store's response to the start of the call. The field callEnd is the outcome of the call
	// when its claim ends. endedTokens has the tokens of ended claims, by entry.
	callStart   store.CallStarted
	startedAt   time.Duration
	callEnd     store.CallOutcome
	endedTokens map[int]uint64
}

func handOf(i *machine.Item) *itemState { return i.Handle.(*itemState) }

func (f *flight) message(entry int) *model.Message {
	return handOf(f.of.Entries[entry].Item).delivery.Message
}

// beginBatch begins the transaction of a batch.
func (p *process) beginBatch(a machine.Begin) {
	f := &flight{p: p, of: a.Flight, serial: a.Serial, generation: p.generation}
	p.flights = append(p.flights, f)
	p.scheduleSoon(func() { f.begin(p.w.now + markLock) })
	if p.w.hurt(plan.TroubleRevoke) {
		p.scheduleSoon(p.w.riders)
	}
}

// fail answers Begin with the class of an error, so that no transaction is open.
func (f *flight) fail(c store.Class) { f.refuse(machine.Marked{Class: c}) }

func (f *flight) refuse(e machine.Marked) {
	e.Flight = f.of
	f.p.scheduleSoon(func() {
		f.drop()
		f.p.feed(e)
	})
}

// drop removes the batch f from the list of open batches.
func (f *flight) drop() {
	f.p.last = f
	f.p.flights = slices.DeleteFunc(f.p.flights, func(g *flight) bool { return g == f })
}

// begin begins a batch in its generation.
func (f *flight) begin(deadline time.Duration) {
	f.runInGeneration(func() { f.lock(deadline) })
}

// lock takes the locks for the markers. If other transactions have these locks, lock waits until the deadline.
func (f *flight) lock(deadline time.Duration) {
	w := f.p.w
	if w.store.Down || f.closedOut() {
		f.fail(store.ClassDown)
		return
	}
	if w.hurt(plan.TroubleBegin) {
		c := []store.Class{store.ClassContended, store.ClassDown}[w.choices.Below(2)]
		w.recordFault("begin fails", "%s", c.String())
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
		// The lock timeout does not apply to the wait for the consumer's lock.
		w.store.Waiting = append(w.store.Waiting, func() {
			if !f.p.over {
				f.begin(w.now + markLock)
			}
		})
		return
	}
	busy, held := f.lockedEntries(), f.streamsHeld()
	if (len(busy) > 0 || held) && w.now < deadline {
		f.waitForLocks(deadline)
		return
	}
	if len(busy) > 0 {
		w.coverage.Add("fault", "copy busy")
		if len(f.of.Entries) > 1 && !w.Plan.Named || w.choices.Flip() {
			f.refuse(machine.Marked{Class: store.ClassContended, CopyBusy: true})
			return
		}
	}
	if held { // after this lock timeout the transaction cannot continue
		w.coverage.Add("fault", "stream held elsewhere")
		f.refuse(machine.Marked{Class: store.ClassContended, CopyBusy: true})
		return
	}
	f.mark(busy)
}

// lockedEntries returns the entries whose identity is locked by another transaction.
func (f *flight) lockedEntries() []int {
	var busy []int
	for i, e := range f.of.Entries {
		holder := f.p.w.store.Holder(identityOf(e.Item), formerOf(e.Item))
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

// mark writes the markers of the batch. This is the simulated store's part of the action Begin; the machine gets the
// result as the event Marked.
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
	f.p.scheduleSoon(func() {
		f.phase = begun
		f.p.feed(machine.Marked{Flight: f.of, Verdicts: slices.Clone(f.verdicts)})
	})
}

// identityOf returns the name of an item's identity in the store.
func identityOf(i *machine.Item) string { return handOf(i).delivery.Message.ID }

// kill closes the connection. The handler of the batch continues until it returns.
func (f *flight) kill() {
	f.killed = true
	if f.outside() { // a batch without a transaction has no connection
		return
	}
	f.tx.Cut = true
	f.p.w.end(f.tx)
}

func (f *flight) rollback() {
	f.phase = rollingBack
	f.p.scheduleSoon(func() {
		f.p.w.end(f.tx)
		f.p.scheduleSoon(func() {
			f.drop()
			f.p.feed(machine.Ended{Flight: f.of, Outcome: store.NotCommitted, Culprit: -1})
		})
	})
}

// markLock is how long a batch waits for another process that handles a copy.
const markLock = 50 * time.Millisecond

// placed copies the version of a message to its item.
func placed(it *machine.Item, m *model.Message) {
	if m.Version > 0 {
		it.Version = &machine.Version{Stream: m.Stream, Number: m.Version}
	}
}

// markOne writes the markers of an entry, and returns the store's answer (new, duplicate, conflict).
func (f *flight) markOne(i int, e machine.Entry) store.Verdict {
	s, m := f.p.w.store, handOf(e.Item).delivery.Message
	v := s.Judge(m.ID, e.Item.Print)
	if v.Kind == store.Fresh && m.Former != "" {
		if s.Locks[m.Former] == f.tx { // an earlier entry of this batch has locked the identity
			return store.Verdict{Kind: store.Busy}
		}
		v = s.Judge(m.Former, e.Item.Print)
		if v.Former = v.Kind != store.Fresh; v.Former {
			v.Known = s.Rows[model.RowKey{ID: m.ID, Conflict: true, Print: e.Item.Print}] != nil && v.Kind == store.Conflict
			f.p.w.coverage.Add("fault", "former identity: "+v.Kind.String())
		}
	}
	if v.Kind == store.Fresh {
		s.Write(f.tx, model.Mark{Entry: i, ID: m.ID, As: e.As, Print: e.Item.Print, At: f.p.w.now})
		if m.Former != "" {
			s.Write(f.tx, model.Mark{Entry: i, ID: m.Former, As: e.As, Print: e.Item.Print, At: f.p.w.now})
		}
	}
	return v
}

// asks reports whether the store must check the stream of an entry: if the message is to be applied or
// skipped, or if it must wait for earlier versions. A reclaimed row that has ended needs no marker.
func (f *flight) asks(i int) bool {
	if f.message(i).Version == 0 || f.claimVerdicts[i].Kind != 0 {
		return false
	}
	switch f.of.Entries[i].As {
	case machine.AsApplied, machine.AsDuplicate, machine.AsDiscarded, machine.AsBlocked, machine.AsOverdue:
		return true
	}
	return false
}

// streamsHeld reports whether another transaction has locked a stream of this batch.
func (f *flight) streamsHeld() bool {
	for i := range f.of.Entries {
		if f.asks(i) && f.p.w.store.Stream(f.message(i).Stream).Held() {
			return true
		}
	}
	return false
}

// turns locks the streams of the batch, and checks the versions of its new messages. The store's answer for an entry
// depends on the earlier entries of the batch.
func (f *flight) turns() {
	now := map[string]model.Place{}
	f.nextVersions = make([]bool, len(f.of.Entries))
	for i, e := range f.of.Entries {
		if !f.asks(i) {
			continue
		}
		m, v := f.message(i), &f.verdicts[i]
		s := f.p.w.store.Stream(m.Stream)
		at, there := now[m.Stream]
		if !there {
			at = s.At
			f.p.w.store.Hold(m.Stream, f.tx)
		}
		if f.nextVersions[i] = v.Kind == store.Fresh && e.As != machine.AsBlocked && e.As != machine.AsOverdue && m.Version == at.Version+1; f.nextVersions[i] {
			at = model.Place{Version: m.Version, Print: e.Item.Print}
		} else if v.Kind == store.Fresh && (e.As == machine.AsApplied || e.As == machine.AsDuplicate || e.As == machine.AsDiscarded && m.Version > at.Version) {
			*v = outOfTurn(m.Version, e.Item.Print, at)
		}
		now[m.Stream] = at
	}
}

// outOfTurn returns the store's answer for a version that is not the next version of its stream.
func outOfTurn(version int64, print semel.Fingerprint, at model.Place) store.Verdict {
	if version > at.Version {
		return store.Verdict{Kind: store.Gap, Missing: version - at.Version - 1}
	}
	return store.Verdict{Kind: store.Stale, Known: version == at.Version && model.Conflicts(at.Print, print)}
}

// lineName returns the name of the line (queue of a key or lane) of an entry, or "" if the entry has no line. For a
// claim, the result is the line of the claimed row.
func (f *flight) lineName(i int) string {
	it := f.of.Entries[i].Item
	switch h := handOf(it); {
	case h.claim != nil && h.claim.Row.Place == 0:
		return ""
	case h.claim != nil:
		return h.claim.Row.Line
	case !f.p.config.Block || f.message(i).Refused != "":
		return ""
	case f.p.config.Lanes == machine.Key:
		return fmt.Sprint("key ", it.Route)
	}
	return "lane " + handOf(it).delivery.Lane.Live().ID
}

// lookBehind sets the store's answer for new messages that must wait for an earlier message of their line (queue of a
// key or lane). The earlier message is in the inbox, or an entry of the same batch puts it there.
func (f *flight) lookBehind() {
	kept := map[string]bool{}
	for i, e := range f.of.Entries {
		line := f.lineName(i)
		if line == "" || handOf(e.Item).claim != nil || f.verdicts[i].Kind != store.Fresh {
			continue
		}
		switch e.As {
		case machine.AsApplied, machine.AsDuplicate:
			if kept[line] || f.p.w.store.First(line) != nil {
				f.verdicts[i].Kind = store.Behind
				f.p.w.coverage.Add("fault", "behind another of its line")
			}
		case machine.AsReceived, machine.AsWaiting, machine.AsBlocked, machine.AsParked:
			kept[line] = true
		}
	}
}

// lookOld sets the store's answer for new messages that are too old. As in the real stores, the age is checked last: if
// a message must wait in its line (queue of a key or lane), its age is checked only when the message is written to the
// line.
func (f *flight) lookOld() {
	for i, e := range f.of.Entries {
		asked := store.Mark{As: e.As.Outcome()}
		if f.verdicts[i].Kind == store.Fresh && handOf(e.Item).claim == nil && asked.Asks() && f.p.w.store.Old(f.message(i)) {
			f.verdicts[i].Kind = store.Old
		}
	}
}
