package recording

import (
	"fmt"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/machine"
)

// The kinds of actions, in the file.
const (
	kindFetch byte = iota + 1
	kindCancelFetch
	kindBegin
	kindRun
	kindStopRun
	kindCommit
	kindRollback
	kindKill
	kindSettle
	kindOver
	kindClaimRows
	kindUnclaim
	kindFlow
	kindRelease
	kindWake
	kindReport
	kindDone
)

// actionWriter writes what the machine decided. Items are named by their arrival, as
// steps from one to the next. form.go says which parts each kind has.
type actionWriter struct {
	writer
	at uint64
}

// actions writes all of a step's.
func (w *actionWriter) actions(all []machine.Action) {
	w.at = 0
	for _, a := range all {
		w.action(a)
	}
}

func (w *actionWriter) item(it *machine.Item) {
	var n uint64
	if it != nil {
		n = it.Arrival()
	}
	w.int(int64(n - w.at))
	w.at = n
}

func (w *actionWriter) action(a machine.Action) {
	switch a := a.(type) {
	case machine.Fetch:
		w.byte(kindFetch)
		w.int(int64(a.Messages))
		w.int(a.Bytes)
	case machine.CancelFetch:
		w.byte(kindCancelFetch)
		w.uint(bit(a.Idle, 0))
	case machine.Begin:
		w.begin(a)
	case machine.Run:
		w.byte(kindRun)
		w.uint(a.Flight.Number)
		w.list(a.Fresh)
		w.time(a.Budget)
	case machine.StopRun:
		w.byte(kindStopRun)
		w.uint(a.Flight.Number)
		w.uint(bit(a.Abort, 0))
	case machine.Commit:
		w.commit(a)
	case machine.Rollback:
		w.byte(kindRollback)
		w.uint(a.Flight.Number)
	case machine.Kill:
		w.byte(kindKill)
		w.uint(a.Flight.Number)
	case *machine.Settle:
		w.byte(kindSettle)
		w.uint(uint64(len(a.Items)))
		for i := range a.Items {
			w.settlement(&a.Items[i])
		}
	case machine.Over:
		w.byte(kindOver)
		w.settlement(&a.Settlement)
	default:
		w.quiet(a)
	}
}

// quiet writes the actions that touch neither transactions nor settlements.
func (w *actionWriter) quiet(a machine.Action) {
	switch a := a.(type) {
	case machine.ClaimRows:
		w.byte(kindClaimRows)
		w.int(int64(a.Messages))
		w.int(a.Bytes)
	case machine.Unclaim:
		w.byte(kindUnclaim)
		w.uint(uint64(len(a.Items)))
		for _, it := range a.Items {
			w.item(it)
		}
		w.item(a.Halted)
		w.uint(w.failed(a.Err))
	case machine.Flow:
		w.byte(kindFlow)
		w.string(a.Lane.ID)
		w.uint(a.Lane.Epoch)
		w.uint(bit(a.On, 0))
	case machine.Release:
		w.byte(kindRelease)
		w.string(a.Lane.ID)
		w.uint(a.Lane.Epoch)
	case machine.Wake:
		w.byte(kindWake)
		w.time(a.At)
	case machine.Report:
		w.byte(kindReport)
		w.uint(uint64(a.Kind))
		w.item(a.Item)
		w.time(a.Wait)
		w.string(a.Part)
		w.int(int64(a.N))
		w.uint(w.failed(a.Err))
	case machine.Done:
		w.done(a)
	default:
		panic(fmt.Sprintf("semel: no recording knows the action %T", a))
	}
}

func (w *actionWriter) begin(a machine.Begin) {
	w.byte(kindBegin)
	w.uint(a.Flight.Number)
	w.uint(uint64(a.Flight.Worker))
	w.uint(bit(a.Serial, 0))
	w.uint(uint64(len(a.Flight.Entries)))
	for _, en := range a.Flight.Entries {
		w.item(en.Item)
		w.uint(uint64(en.As)<<2 | bit(en.Unmarked, 0) | bit(en.Unknown, 1))
	}
}

func (w *actionWriter) commit(a machine.Commit) {
	w.byte(kindCommit)
	w.uint(a.Flight.Number)
	w.list(a.Trim)
	w.uint(uint64(len(a.Rows)))
	for i := range a.Rows {
		r := &a.Rows[i]
		w.int(int64(r.Entry))
		w.uint(bit(r.Repeat, 0) | bit(r.Conflict, 1) | bit(r.First != nil, 2) | bit(r.Last != nil, 3))
		w.uint(uint64(r.As))
		w.reason(r.Reason)
		w.int(int64(r.Attempts))
		w.time(r.After)
	}
}

// What a settlement has beside its kind and its ending, as bits. Most have nothing.
const (
	hasAfter = 1 << iota
	hasReason
	hasError
	isCharged
	hasAttempts
	isAgain
)

func (w *actionWriter) settlement(s *machine.Settlement) {
	w.item(s.Item)
	w.uint(uint64(s.Kind))
	w.uint(uint64(s.Ending))
	w.uint(bit(s.After != 0, 0) | bit(s.Reason != semel.ReasonNone, 1) | bit(s.Err != nil, 2) | bit(s.Charged, 3) | bit(s.Attempts != 0, 4) | bit(s.Again, 5))
	if s.After != 0 {
		w.time(s.After)
	}
	if s.Reason != semel.ReasonNone {
		w.reason(s.Reason)
	}
	if s.Attempts != 0 {
		w.int(int64(s.Attempts))
	}
}

func (w *actionWriter) done(a machine.Done) {
	w.byte(kindDone)
	w.uint(bit(a.Halted, 0) | bit(a.Err != nil, 1) | bit(a.Idle, 2) | bit(a.Full, 3))
	w.item(a.Item)
	w.reason(a.Reason)
	w.uint(uint64(len(a.Behind)))
	for _, b := range a.Behind {
		w.string(b.Lane.ID)
		w.uint(b.Lane.Epoch)
		w.int(int64(b.Messages))
		w.item(b.Item)
	}
}
