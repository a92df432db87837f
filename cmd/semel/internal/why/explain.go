package why

import (
	"fmt"
	"strings"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/operate"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/generations"
	"github.com/semel-go/semel/internal/reasonname"
	"github.com/semel-go/semel/internal/timing"
	"github.com/semel-go/semel/store"
)

// Explain returns whether the message was applied, the reason, and the next commands.
func Explain(f *Facts) Answer {
	a := f.explainFirst()
	var more []string
	others := f.others()
	a = withDoubtOfOthers(others, a)
	if len(others) > 0 && a.Stage != StageConflict {
		more = append(more, fmt.Sprintf("Under the same identity %s, which %s: row %d.", contents(len(others)), effectOf(&others[0]), others[0].Number))
		a.Do = append(a.Do, f.showCommand(&others[0]))
	}
	if g := f.Generation; g != nil && g.State != generations.Active {
		more = append(more, fmt.Sprintf("This answer is about generation %d, which is %s; effects happen in the active generation.", g.Number, g.State))
	}
	if len(f.Unread) > 0 {
		more = append(more, "Some records could not be read; the missing privileges are listed.")
	}
	a.Says = strings.Join(append([]string{a.Says}, more...), " ")
	return a
}

// contents returns the start of a sentence about n different contents.
func contents(n int) string {
	if n == 1 {
		return "other content arrived"
	}
	return fmt.Sprintf("%d other contents arrived", n)
}

// explainFirst returns the answer about the content that the marker belongs to. The marker belongs to
// the first content, unless an operator released another content.
func (f *Facts) explainFirst() Answer {
	owner := f.owner()
	switch r := f.Row; {
	case f.isNewer():
		return Answer{StageNewer, Unknown, "A newer release wrote its records, which this release cannot interpret.", []Command{{"version"}}}
	case owner != nil && owner.Conflict && !f.disagree():
		return f.explainReleased(owner)
	case r == nil && len(f.Conflicts) > 0:
		return f.explainConflict(&f.Conflicts[0])
	case r == nil:
		return f.explainMarkerOnly()
	case f.isSupplanted():
		return f.explainUnrecordedOwner(r)
	case f.disagree():
		if owner != nil {
			r = owner
		}
		says := "Its marker says %s and its row says %s: both are always written in one commit, so another program changed one of them."
		return Answer{StageBroken, Unknown, fmt.Sprintf(says, outcomeText(f.marker().Outcome), admin.StateOf(r.State)), []Command{f.showCommand(r)}}
	case r.Unreadable != "" && r.State != store.StateCompleted && r.State != store.StateDiscarded:
		says := fmt.Sprintf("%sit is %s, and its content cannot be read: %s.", leadText(r, "It was not applied: "), admin.StateOf(r.State), r.Unreadable)
		return withDoubt(r, Answer{StageParked, No, says, []Command{f.showCommand(r)}})
	}
	return withDoubt(f.Row, f.explainRow(f.Row))
}

// unknownCall is the start of the answer about a row whose call has an unknown outcome.
const unknownCall = "It is unknown whether it was applied: a call has an unknown outcome. "

// leadText returns the start of an answer: unknownCall after a call with an unknown outcome, otherwise certain.
func leadText(r *store.StoredRow, certain string) string {
	if r.UnknownOutcome() {
		return unknownCall + "Known facts: "
	}
	return certain
}

// withDoubt returns the answer a. After a call with an unknown outcome, the field Applied is
// Unknown instead of No.
func withDoubt(r *store.StoredRow, a Answer) Answer {
	if r.UnknownOutcome() && a.Applied == No {
		a.Applied = Unknown
	}
	return a
}

// isNewer reports whether a newer release of Semel wrote the records.
func (f *Facts) isNewer() bool {
	if m := f.marker(); m != nil && !isKnown(m.Outcome) {
		return true
	}
	owner := f.owner()
	return f.Row != nil && !f.Row.State.Known() || owner != nil && !owner.State.Known()
}

func isKnown(o store.Outcome) bool { return o >= store.Applied && o <= store.Discarded }

// disagree reports whether marker and row contradict each other, although Semel writes both in one
// transaction. A row with a generated id, or with an id that older selectors found, has a separate marker, so
// no contradiction is reported.
func (f *Facts) disagree() bool {
	m, r := f.marker(), f.Row
	if owner := f.owner(); owner != nil {
		r = owner
	}
	if m == nil || r == nil || r.Surrogate || len(f.Markers) > 1 || f.isSupplanted() {
		return false
	}
	return r.State.Outcome() != m.Outcome
}

// explainRow returns the answer about a row whose marker agrees with the row.
func (f *Facts) explainRow(r *store.StoredRow) Answer {
	switch r.State {
	case store.StateReceived:
		return f.explainReceived(r)
	case store.StateInProgress:
		return f.explainClaimed(r)
	case store.StateFailedRetryable:
		return f.explainRetry(r)
	case store.StateBlocked:
		return f.explainBlocked(r)
	case store.StateParked:
		return f.explainParked(r)
	case store.StateDeadLettered:
		return f.explainDeadLettered(r)
	case store.StateDiscarded:
		return f.explainDiscarded(r)
	}
	return f.explainApplied(r)
}

// isFromFuture reports whether the row was written while the database clock was ahead.
func (f *Facts) isFromFuture(r *store.StoredRow) bool {
	return r.ChangedAt.Sub(f.Now) > timing.ClockSlack
}

// explainFromFuture returns the answer about a row that was written while the database clock was ahead.
func (f *Facts) explainFromFuture(stage Stage, r *store.StoredRow, says string, at time.Time) Answer {
	return Answer{stage, No, says + fmt.Sprintf(" It waits until %s; the database clock was probably ahead when the row was written at %s. "+
		"A process that runs a consumer on this store corrects the time within a minute.", moment(at), moment(r.ChangedAt)), nil}
}

func (f *Facts) explainReceived(r *store.StoredRow) Answer {
	if r.DueAt.After(f.Now) && f.isFromFuture(r) {
		a := f.explainFromFuture(StageLater, r, "It was not applied yet.", r.DueAt)
		a.Do = []Command{change(f.verb("messages retry", "intents retry"), r)}
		return a
	}
	if r.DueAt.After(f.Now) {
		return Answer{StageLater, No, fmt.Sprintf("It was not applied yet: it was received at %s and waits until %s.", moment(r.ReceivedAt), moment(r.DueAt)), nil}
	}
	if r.CallsStarted > 0 {
		a := f.explainWaiting(StageDue, "A call was made before and will be repeated: the message waits for a worker of its consumer.")
		a.Applied = Unknown
		return a
	}
	says := fmt.Sprintf("It was not applied yet: it was received at %s and waits for a worker of its consumer.", moment(r.ReceivedAt))
	if step := len(r.Steps); step > 0 {
		says = fmt.Sprintf("It was not applied completely yet: step %s has taken effect, and the next step waits for a worker of its consumer.", r.Steps[step-1].Name)
	}
	return f.explainWaiting(StageDue, says)
}

// explainWaiting returns the answer about a message that waits for a worker. If a known cause keeps workers
// from processing the message, the answer contains the cause.
func (f *Facts) explainWaiting(stage Stage, says string) Answer {
	name, _ := admin.GenerationOf(f.Key.Consumer)
	switch {
	case f.Control.Paused:
		return Answer{stage, No, says + fmt.Sprintf(" The consumer is paused, by %s: %s.", f.Control.Pause.By, strings.TrimSuffix(f.Control.Pause.Why, ".")),
			[]Command{Command{"consumers", "resume", name}.withReason()}}
	case !f.Progress.IsZero() && f.Now.Sub(f.Progress) > timing.LaneTimeout:
		return Answer{stage, No, says + fmt.Sprintf(" The consumer does not seem to run, or has stopped: it last reported progress at %s.", moment(f.Progress)),
			f.runCommand(name)}
	}
	return Answer{stage, No, says, []Command{{"messages", "summary", "--by", "state", "--consumer", name}}}
}

func (f *Facts) explainClaimed(r *store.StoredRow) Answer {
	call := ""
	if r.UnknownOutcome() {
		call = " A call was begun whose outcome is unknown."
	}
	if r.LockedUntil.After(f.Now) && f.isFromFuture(r) {
		a := f.explainFromFuture(StageClaimed, r, "It was not applied yet: a process has claimed it and may have died."+call, r.LockedUntil)
		a.Do = []Command{change("messages release", r)}
		return a
	}
	if r.LockedUntil.After(f.Now) {
		return Answer{StageClaimed, No, fmt.Sprintf("It is being processed: a process has claimed it until %s.%s", moment(r.LockedUntil), call),
			[]Command{change("messages release", r)}}
	}
	return f.explainWaiting(StageStale, fmt.Sprintf("It was not applied yet: the process that had claimed it did not finish, and its lease ended at %s; the next worker of its consumer takes it.%s", moment(r.LockedUntil), call))
}

func (f *Facts) explainRetry(r *store.StoredRow) Answer {
	failed := fmt.Sprintf("It was not applied yet: %s failed%s", attempts(r.Attempts), colonText(r.LastError))
	if r.UnknownOutcome() {
		failed = fmt.Sprintf("It is unknown whether it was applied: a call has an unknown outcome%s", colonText(r.LastError))
	}
	var a Answer
	switch {
	case r.DueAt.After(f.Now) && f.isFromFuture(r):
		a = f.explainFromFuture(StageRetry, r, failed+".", r.DueAt)
		a.Do = []Command{change(f.verb("messages retry", "intents retry"), r)}
	case r.DueAt.After(f.Now):
		a = Answer{StageRetry, No, failed + fmt.Sprintf("; the next attempt is at %s.", moment(r.DueAt)),
			[]Command{change(f.verb("messages retry", "intents retry"), r)}}
	default:
		a = f.explainWaiting(StageRetry, failed+"; the next attempt waits for a worker of its consumer.")
	}
	if r.UnknownOutcome() {
		a.Applied = Unknown
		a.Do = append(a.Do, f.resolve(r))
	}
	return a
}

func (f *Facts) explainBlocked(r *store.StoredRow) Answer {
	if r.Version > 0 && f.Ahead == nil {
		return f.explainGap(r, "It was not applied yet: as version %d of its stream it waits for version %d, which has not taken effect.", StageGap)
	}
	if f.Ahead == nil {
		return f.explainWaiting(StageBehind, "It was not applied yet: the message that blocked it has ended, and it is processed within an hour, or when its consumer starts.")
	}
	b := f.Ahead
	says := fmt.Sprintf("It was not applied yet: to keep the order it waits behind row %d, which is %s%s.", b.Number, admin.StateOf(b.State), ofReason(b))
	a := Answer{StageBehind, No, says, []Command{f.showCommand(b)}}
	if b.State == store.StateParked {
		a.Do = append(a.Do, change("messages retry", b))
	}
	a.Do = append(a.Do, change("messages skip", b))
	return a
}

// explainGap returns the answer about a message that waits for an earlier version.
func (f *Facts) explainGap(r *store.StoredRow, says string, stage Stage) Answer {
	next := r.Version - 1
	if f.Stream != nil {
		next = f.Stream.Last + 1
	}
	a := Answer{Stage: stage, Applied: No, Says: fmt.Sprintf(says, r.Version, next)}
	if len(f.Missing) > 0 {
		a.Says += fmt.Sprintf(" No row of %s exists.", spans(f.Missing))
	}
	stream := operate.NewView("", *r).StreamName()
	a.Do = []Command{{"gaps", "show", "--stream", stream}, Command{"gaps", "skip", "--stream", stream}.withReason()}
	return a
}

func (f *Facts) explainApplied(r *store.StoredRow) Answer {
	a := Answer{Stage: StageApplied, Applied: Yes, Says: fmt.Sprintf("It was applied %s%s.", f.changeTime(r, "at"), attemptsText(r))}
	if act := f.lastAct(r.Number, "resolve"); act != nil {
		a.Says = fmt.Sprintf("It was applied: %s recorded that at %s: %s.", act.Who, moment(act.At), strings.TrimSuffix(act.Why, "."))
	}
	if r.Reason == reasonname.Erased {
		a.Says += " Its content was erased since" + f.eraser(r.Number) + "."
	}
	return f.addDuplicates(a, r)
}

// attemptsText returns a text about the number of attempts, or "" after the first attempt.
func attemptsText(r *store.StoredRow) string {
	if r.Attempts < 2 {
		return ""
	}
	return fmt.Sprintf(", with attempt %d", r.Attempts)
}

func (f *Facts) addDuplicates(a Answer, r *store.StoredRow) Answer {
	switch n := r.Repeated; {
	case n == 1:
		a.Says += " One copy arrived since: a duplicate without effect."
	case n > 1:
		a.Says += fmt.Sprintf(" %d copies arrived since: duplicates without effect.", n)
	}
	return a
}

func (f *Facts) explainDeadLettered(r *store.StoredRow) Answer {
	says := fmt.Sprintf("%safter %s it was dead-lettered %s%s.", leadText(r, "It was not applied: "), attempts(r.Attempts), f.changeTime(r, "at"), cause(r))
	return f.addDuplicates(Answer{StageDeadLettered, No, says, []Command{
		rowCommand("messages show", r),
		change("messages retry", r),
	}}, r)
}

func (f *Facts) explainDiscarded(r *store.StoredRow) Answer {
	a, never := Answer{Stage: StageDiscarded, Applied: No}, "It was not applied and never will be: "
	if admin.MayAct(admin.RowReopened, r, false) == nil && r.Reason != reasonname.Stale {
		a.Do, never = []Command{change("messages reopen", r)}, "It was not applied, and will not be unless it is reopened: "
	}
	if r.UnknownOutcome() {
		a.Do, never = []Command{f.showCommand(r)}, unknownCall+"It is not retried: "
	}
	switch act := f.lastAct(r.Number, "discard"); {
	case act != nil:
		a.Says = fmt.Sprintf("%s%s discarded it at %s: %s.", never, act.Who, moment(act.At), strings.TrimSuffix(act.Why, "."))
	case r.Reason == reasonname.Stale:
		a.Stage = StageStaleVersion
		a.Says = fmt.Sprintf("%swhen version %d arrived, its stream was already past it.", never, r.Version)
		if f.Stream != nil {
			a.Says = strings.TrimSuffix(a.Says, ".") + fmt.Sprintf("; the stream is at version %d.", f.Stream.Last)
		}
	case r.Reason == reasonname.Erased:
		a.Says = fmt.Sprintf("%sit was discarded, and its content was erased since%s.", never, f.eraser(r.Number))
	default:
		a.Says = fmt.Sprintf("%sits handler or its policy discarded it %s%s.", never, f.changeTime(r, "at"), cause(r))
	}
	return f.addDuplicates(a, r)
}

// explainConflict returns the answer about a row with different content, if the first content has no row.
func (f *Facts) explainConflict(r *store.StoredRow) Answer {
	m := f.marker()
	a := Answer{Stage: StageConflict, Do: []Command{f.showCommand(r)}, Applied: Unknown}
	switch {
	case f.NoMarkers:
		a.Says = "Two messages with different content have this identity, and the records of the first cannot be read."
	case m == nil:
		a.Says = "Two messages with different content have this identity, and no record of the first is left."
	case m.Outcome == store.Applied:
		a.Applied = Yes
		a.Says = fmt.Sprintf("The first content was applied at %s.", moment(m.At))
	default:
		a.Applied = No
		a.Says = fmt.Sprintf("The first content was not applied: it is %s since %s.", outcomeText(m.Outcome), moment(m.At))
	}
	a.Says += fmt.Sprintf(" Then %s under the same identity, and %s: row %d, received at %s, %s %s%s.",
		contents(len(f.Conflicts)), effectOf(r), r.Number, moment(r.ReceivedAt), admin.StateOf(r.State), f.changeTime(r, "since"), ofReason(r))
	if !r.State.Ended() {
		a.Do = append(a.Do, change("messages discard", r))
	}
	return a
}

// explainMarkerOnly returns the answer about an identity with a marker but without a row.
func (f *Facts) explainMarkerOnly() Answer {
	m := f.marker()
	switch {
	case m == nil && f.Leased != nil:
		return f.explainLeased(f.Leased)
	case m == nil:
		return Answer{StageMarked, Unknown, "The store has no record of it.", nil}
	}
	a := Answer{Stage: StageMarked, Applied: No}
	switch m.Outcome {
	case store.Applied:
		a = Answer{Stage: StageApplied, Applied: Yes, Says: fmt.Sprintf("It was applied at %s, in the commit of its marker. Copies are duplicates and have no effect.", moment(m.At))}
	case store.Discarded:
		a.Stage = StageDiscarded
		if f.NoRows {
			a.Says = fmt.Sprintf("It was not applied and never will be: it was discarded at %s.", moment(m.At))
			break
		}
		a.Says = fmt.Sprintf("It was not applied and never will be: it was discarded at %s, and its row was removed.", moment(m.At))
	default:
		if f.NoRows {
			return Answer{StageMarked, Unknown, fmt.Sprintf("Its marker says %s, since %s; its row, which has the details, cannot be read.", outcomeText(m.Outcome), moment(m.At)), nil}
		}
		a = Answer{Stage: StageBroken, Applied: Unknown, Says: fmt.Sprintf("Its marker says %s, since %s, and its row is missing: another program removed it. Copies are treated as duplicates.", outcomeText(m.Outcome), moment(m.At))}
	}
	if len(f.Erasures) > 0 {
		e := f.Erasures[len(f.Erasures)-1]
		a.Says += fmt.Sprintf(" Its stored content was erased by %s at %s.", e.Who, moment(e.At))
	}
	return a
}

// lastAct returns the last recorded command with this verb for a row, or nil.
func (f *Facts) lastAct(row int64, verb string) *store.Act {
	for _, d := range f.Details {
		if d.Number != row {
			continue
		}
		for i := len(d.Changes) - 1; i >= 0; i-- {
			if a := d.Changes[i]; a.Verb == verb {
				return &store.Act{Verb: a.Verb, Who: a.Who, Why: a.Why, At: a.At, Result: a.Result}
			}
		}
	}
	return nil
}

func (f *Facts) eraser(row int64) string {
	if act := f.lastAct(row, "erase"); act != nil {
		return fmt.Sprintf(", by %s at %s", act.Who, moment(act.At))
	}
	return ""
}
