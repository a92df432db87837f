package storetest

import (
	"errors"
	"fmt"
	"slices"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/reasonname"
	"github.com/semel-go/semel/internal/versions"
	"github.com/semel-go/semel/store"
)

// twinStates returns the names of all states in which a row of an identity may be when an operator changes it. The
// method moveTo of twinWorld brings a row into each of these states.
func (s suite[Tx]) twinStates() []string {
	states := []string{"parked", "retried", "in progress", "parked again", "discarded", "completed"}
	if s.h.Can.Steps {
		states = append(states, "parked after a step")
	}
	if s.h.Can.Calls {
		states = append(states, "parked after an unknown call")
	}
	if s.h.Can.Lines {
		states = append(states, behindAnother)
	}
	if s.h.Can.Streams {
		states = append(states, behindAGap)
	}
	return states
}

// twinActs contains the commands of operators on a row. twinArrivals contains the contents that arrive after the
// command.
var (
	twinActs     = []string{"retry", "discard", "release", "edit", "reopen", "resolve", "skip"}
	twinArrivals = []byte{1, 2, 3}
)

// States of rows that wait for another message: for an earlier message of their line (the queue of a key or lane), or
// for an earlier version of their stream.
const (
	behindAnother = "blocked behind another"
	behindAGap    = "blocked behind a gap"
)

// moveTo brings a row to a state, as far as the store allows. An event that the store rejects leaves the row
// unchanged.
func (w *twinWorld[Tx]) moveTo(state string, number int64) {
	switch state {
	case "discarded":
		w.act("discard", number)
	case "retried":
		w.act("retry", number)
	case "in progress":
		w.act("retry", number)
		w.takes(number, long)
	case "parked again":
		w.act("retry", number)
		for _, c := range w.takes(number, long) {
			w.endsClaim(store.ClaimEnding{Claim: c.Claim, State: store.StateParked, Reason: semel.ReasonPermanent, Ran: true})
		}
	case "completed":
		w.act("retry", number)
		w.work()
	case "parked after a step":
		w.act("retry", number)
		for _, c := range w.takes(number, long) {
			w.step(c)
		}
		for _, c := range w.takes(number, long) {
			w.endsClaim(store.ClaimEnding{Claim: c.Claim, State: store.StateParked, Reason: semel.ReasonPermanent, Ran: true})
		}
	case behindAnother, behindAGap:
		w.act("retry", number)
		w.work()
	case "parked after an unknown call":
		w.act("retry", number)
		for _, c := range w.takes(number, long) {
			w.starts(c.Claim, long)
			w.endsClaim(store.ClaimEnding{Claim: c.Claim, State: store.StateParked, Reason: semel.ReasonOutcomeUnknown, Call: store.CallUnknown})
		}
	}
}

// twinWorld is an identity with two contents. A twinWorld counts how often each content took effect.
type twinWorld[Tx any] struct {
	*fixture[Tx]
	effects map[byte]int
	// stepped contains the contents for which a step took effect.
	stepped map[byte]bool
	// waitReasons maps a content to the reason why it waits: behindAnother or behindAGap. firstInLine is the
	// number of the first row of the line (the queue of a key or lane). In the cases behindAGap, version 1 of the
	// stream is missing.
	waitReasons map[byte]string
	firstInLine int64
}

// The functions line and stream return the names of an identity's line (the queue of a key or lane) and stream.
func line(id string) string   { return "line of " + id }
func stream(id string) string { return "stream of " + id }

// twinMark returns a mark for a content. If the content waits in a line or a stream, the mark contains this line or
// stream.
func (w *twinWorld[Tx]) twinMark(id string, content byte) store.Mark {
	m := w.contentMark(id, content)
	switch w.waitReasons[content] {
	case behindAnother:
		m.Line = []byte(line(id))
	case behindAGap:
		m.Version = versions.Position{Stream: []byte(stream(id)), Number: 2, Start: 1, Asks: true}
	}
	return m
}

// meet delivers the two contents of an identity, and stores them as the consumer would.
func (w *twinWorld[Tx]) meet(id string) (first, second store.StoredRow) {
	w.t.Helper()
	one, row := w.twinMark(id, 1), store.Row{State: store.StateParked, Reason: semel.ReasonPermanent, Message: &semel.Message{Body: []byte{1}}}
	if w.waitReasons[1] == behindAnother || w.waitReasons[2] == behindAnother {
		w.firstInLine = w.enters(line(id), store.StateParked, "ahead of "+id)[0].Number
	}
	switch w.waitReasons[1] {
	case behindAnother:
		row.State, row.Reason = store.StateBlocked, reasonname.Behind
	case behindAGap:
		row.State, row.Reason, row.After = store.StateBlocked, semel.ReasonGap, 24*long
	}
	one.As = row.State.Outcome()
	b, v := w.begin(one)
	w.wantKinds(v, fresh)
	w.commit(b, store.Ending{Rows: []store.Row{row}})
	b, v = w.begin(w.twinMark(id, 2))
	w.wantKinds(v, conflict)
	w.commit(b, conflictRow(2, v[0].Known))
	return w.rowOfIdentity(id, false), w.rowOfIdentity(id, true)
}

// unblock applies the messages for which the contents of an identity wait.
func (w *twinWorld[Tx]) unblock(id string) {
	w.t.Helper()
	if w.firstInLine != 0 {
		w.act("retry", w.firstInLine)
	}
	if w.waitReasons[1] == behindAGap || w.waitReasons[2] == behindAGap {
		m := w.mark("before " + id)
		m.Version = versions.Position{Stream: []byte(stream(id)), Number: 1, Start: 1, Asks: true}
		w.wantKinds(w.deliver(m), fresh)
	}
}

// step commits the first step of a claimed row.
func (w *twinWorld[Tx]) step(c store.Claimed) {
	w.t.Helper()
	m := w.asking(c)
	m.Fingerprint = c.Row.Fingerprint
	b, v := w.begin(m)
	w.wantKinds(v, fresh)
	w.commit(b, store.Ending{Claims: []store.ClaimEnding{{Claim: c.Claim, State: store.StateReceived, Stepped: true, Ran: true, Steps: []store.StepDone{{Name: "reserve"}}}}})
	w.stepped[c.Row.Fingerprint.Sum[0]] = true
}

// act executes a command of an operator. If the store rejects the command, act checks that the error is one of the
// expected errors.
func (w *twinWorld[Tx]) act(verb string, number int64) {
	w.t.Helper()
	r := w.number(number)
	seen := r.Seen()
	var err error
	switch ctx := w.t.context(); verb {
	case "retry":
		err = errors.Join(w.requeuer().Requeue(ctx, act(verb), seen)...)
	case "discard":
		err = errors.Join(w.inbox().Discard(ctx, act(verb), seen)...)
	case "release":
		err = errors.Join(w.requeuer().Release(ctx, act(verb), seen)...)
	case "reopen":
		err = errors.Join(w.requeuer().Reopen(ctx, act(verb), seen)...)
	case "edit":
		if e, able := w.Store.(admin.Editor); able {
			err = e.Edit(ctx, number, r.Revision, []byte("edited"), "", act(verb))
		}
	case "skip":
		if e, able := w.Store.(admin.Lines); able {
			err = errors.Join(e.Skip(ctx, act(verb), seen)...)
		}
	case "resolve":
		if e, able := w.Store.(admin.Resolver); able {
			err = errors.Join(e.Resolve(ctx, admin.ResolvedNotDone, act(verb), seen)...)
		}
	}
	if err != nil && !errors.Is(err, semel.ErrState) && !errors.Is(err, semel.ErrConflict) {
		w.t.Errorf("%s of row %d: %v", verb, number, err)
	}
	if err != nil && w.number(number).Revision != r.Revision {
		w.t.Errorf("%s of row %d is refused with %v and has changed it", verb, number, err)
	}
}

// work claims and applies rows until no row can be claimed.
func (w *twinWorld[Tx]) work() {
	w.t.Helper()
	for range 4 {
		all, err := w.leases().Claim(w.t.context(), store.ClaimOptions{Consumer: "billing", Token: store.NewToken(), Most: 10, Lease: long})
		w.t.must(err)
		if len(all) == 0 {
			return
		}
		for _, c := range all {
			w.finish(c)
		}
	}
}

// finish applies the message of a claimed row.
func (w *twinWorld[Tx]) finish(c store.Claimed) {
	w.t.Helper()
	ends := store.ClaimEnding{Claim: c.Claim, State: store.StateCompleted, Ran: true, Lined: c.Row.Line != ""}
	m := w.mark(c.Row.Key.ID)
	if c.Number != w.firstInLine {
		m = w.twinMark(c.Row.Key.ID, c.Row.Fingerprint.Sum[0])
	}
	m.Claim, m.Fingerprint, m.Line = c.Claim, c.Row.Fingerprint, []byte(c.Row.Line)
	b, v := w.begin(m)
	switch {
	case v[0].Kind == store.Gap:
		b.Rollback(w.t.context())
		m.As = store.Waiting
		b, _ = w.begin(m)
		ends.State, ends.After, ends.Reason, ends.Version, ends.Ran = store.StateBlocked, 24*long, semel.ReasonGap, m.Version, false
		w.commit(b, store.Ending{Claims: []store.ClaimEnding{ends}})
		return
	case v[0] != fresh:
		w.t.Errorf("the claim of row %d is %s, and its row is %+v", c.Number, v[0], w.number(c.Number))
		b.Rollback(w.t.context())
		return
	}
	w.t.must(w.Effect(w.t.context(), b.Tx(0), c.Row.Key.ID))
	w.commit(b, store.Ending{Claims: []store.ClaimEnding{ends}})
	if c.Number != w.firstInLine {
		w.effects[c.Row.Fingerprint.Sum[0]]++
	}
}

// arrives delivers a content, as the consumer would.
func (w *twinWorld[Tx]) arrives(id string, content byte) {
	w.t.Helper()
	b, v := w.begin(w.twinMark(id, content))
	switch v[0].Kind {
	case store.Conflict:
		w.commit(b, conflictRow(content, v[0].Known))
	case store.Fresh:
		w.t.Errorf("content %d is fresh although its identity has rows", content)
		b.Rollback(w.t.context())
	default:
		b.Rollback(w.t.context())
	}
}

// holds checks that no content was applied twice, was lost or waits forever, and that the marker agrees with one of the
// rows.
func (w *twinWorld[Tx]) holds(id string) {
	w.t.Helper()
	all := 0
	for content, n := range w.effects {
		if all += n; n > 1 {
			w.t.Errorf("content %d took effect %d times", content, n)
		}
		for other := range w.stepped {
			if other != content {
				w.t.Errorf("content %d took effect, and also a step of content %d", content, other)
			}
		}
	}
	if w.wantCount(id, all); all > 1 {
		w.t.Errorf("several contents took effect: %v", w.effects)
	}
	agrees, is := false, Twins{Applied: all > 0}
	for _, r := range w.list(store.RowFilter{IDs: []string{id}}) {
		if r.State.Outcome() == store.Waiting {
			w.t.Errorf("row %d is %s after all due rows were processed", r.Number, r.State)
		}
		if (r.State == store.StateCompleted) != (w.effects[r.Fingerprint.Sum[0]] == 1) {
			w.t.Errorf("row %d is %s, and its content took effect %d times", r.Number, r.State, w.effects[r.Fingerprint.Sum[0]])
		}
		for other := range w.effects {
			if r.UnknownOutcome() && r.State != store.StateDiscarded && other != r.Fingerprint.Sum[0] {
				w.t.Errorf("content %d took effect, although a call for row %d has an unknown outcome", other, r.Number)
			}
		}
		if is.Unknown = is.Unknown || r.UnknownOutcome(); r.State == store.StateCompleted {
			is.Owner = r.Number
		}
		agrees = agrees || w.asks(w.contentMark(id, r.Fingerprint.Sum[0]))[0] == already(r.State.Outcome())
	}
	if !agrees {
		w.t.Errorf("the marker agrees with no row")
	}
	if w.Says != nil {
		w.Says(w.t, id, is)
	}
}

// repeats reports whether a pair of states gives the same results as the pair in which the conflict is parked. The
// results are the same while the first content waits, is applied, or may be applied in part, because every command on
// the conflict except a discard is then rejected.
func repeats(one, two string) bool {
	wait := []string{behindAnother, behindAGap}
	if slices.Contains(wait, one) {
		return !slices.Contains(append(wait, "parked", "discarded"), two)
	}
	return slices.Contains(wait, two) && !slices.Contains([]string{"parked", "parked again", "discarded"}, one)
}

// testTwinTable tests every pair of states of a first content and a conflict, with every command on one of the two
// rows, and with every content that arrives after the command.
func (s suite[Tx]) testTwinTable(t *T) {
	for _, one := range s.twinStates() {
		s.run(t, "law_16_every_pair_of_rows_of_an_identity/the_first_"+one,
			"Whatever the states of two rows of an identity, the command on one of them and the content that arrives then: at most one content takes effect, and only once; no row is stuck; the marker agrees with a row.", func(t *T, h *fixture[Tx]) {
				if h.Agrees != nil {
					defer h.Agrees(t)
				}
				n := 0
				for _, two := range s.twinStates() {
					if repeats(one, two) {
						continue
					}
					for _, verb := range twinActs {
						for on := range 2 {
							n++
							name := fmt.Sprintf("%s+%s, %s of %d, %d comes", one, two, verb, on+1, twinArrivals[n%3])
							w := &twinWorld[Tx]{fixture: h, effects: map[byte]int{}, stepped: map[byte]bool{}}
							w.pair(name, one, two, verb, on, twinArrivals[n%3])
						}
					}
				}
			})
	}
}

// pair tests one combination of states, command and arriving content. If a check fails, its error contains the identity
// of the combination.
func (w *twinWorld[Tx]) pair(id, one, two, verb string, on int, arrival byte) {
	w.t.Helper()
	before := w.t.Failed()
	w.waitReasons = map[byte]string{1: one, 2: two}
	first, second := w.meet(id)
	numbers := []int64{first.Number, second.Number}
	w.moveTo(one, first.Number)
	w.moveTo(two, second.Number)
	w.act(verb, numbers[on])
	w.arrives(id, arrival)
	for _, n := range numbers { // end each claim that is still valid
		if w.number(n).State == store.StateInProgress {
			w.act("release", n)
		}
	}
	w.work()
	w.unblock(id)
	w.work()
	w.holds(id)
	if w.t.Failed() && !before {
		w.t.Fatalf("failed case: %s", id)
	}
}
