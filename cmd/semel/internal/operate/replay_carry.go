package operate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/store"
)

// Replay replays dead letters in the given order. A dead letter is retried after all earlier dead letters
// with the same key or the same identity have ended.
type Replay struct {
	// Verb is the command that makes the rows due: Retry by default, or Send for intents.
	Verb admin.Verb
	// Who and Why are written to the audit trail for every dead letter.
	Who, Why string
	// Work processes the due rows of one consumer in this process. If Work is nil, running consumers process
	// the rows.
	Work func(ctx context.Context, consumer string, numbers []int64) error
	// The function Rouse notifies running consumers that rows are due; may be nil.
	Rouse func(ctx context.Context, consumer string)
	// Rate is the maximum number of retried dead letters per second; 0 means no limit.
	Rate float64
	// Progress is called with all dead letters after each change; may be nil.
	Progress func([]Letter)
	// Alone is called once if no consumer processes the due rows; may be nil.
	Alone func()
	// The function At is called at the crash points, for tests; may be nil.
	At func(ReplayPoint)
}

// ReplayPoint is a crash point of a replay or an edit. Tests kill the process at crash points.
type ReplayPoint string

// The crash points of replays and edits.
const (
	BeforeEdit    ReplayPoint = "before edit"
	AfterEdit     ReplayPoint = "after edit"
	BeforeRequeue ReplayPoint = "before requeue"
	AfterRequeue  ReplayPoint = "after requeue"
	AfterWork     ReplayPoint = "after work"
)

const (
	// mostOpen is the maximum number of dead letters that are due and unfinished at the same time.
	mostOpen = 200
	// lookAgain is the interval at which the replay reads rows that other processes work on.
	lookAgain = 100 * time.Millisecond
	// If no row ends within the duration `noWorkerTimeout`, the replay calls the function Alone.
	noWorkerTimeout = 5 * time.Second
	// maxRetryDelay is the maximum time until a row's next attempt for which the replay waits.
	maxRetryDelay = time.Minute
	// mostFailed is the maximum number of consecutive failed retries. A failed retry can take as long as the
	// store's lock timeout.
	mostFailed = 3
	// maxChanges is how often a row may change while a command for the row is tried. Each redelivery
	// that is counted on the row changes the row.
	maxChanges = 20
)

// replayRun is a replay in progress.
type replayRun struct {
	Replay
	box           Box
	letters       []Letter
	dueLetters    []int // indexes of due dead letters
	blockedLanes  map[string]int64
	credit        float64   // number of dead letters that may be retried now, with a rate limit
	creditAddedAt time.Time // time at which credit was last added
	lastEnded     time.Time // time at which the last dead letter ended
	aloneReported bool
	failureCount  int // consecutive dead letters that the store failed to retry
}

// Replay replays the dead letters that are predicted to be applied, and sets the fates of all dead letters.
// After an error, the fates show which dead letters were replayed. Rows that are due stay due.
func (b Box) Replay(ctx context.Context, letters []Letter, o Replay) ([]Letter, error) {
	o.Verb = cmp.Or(o.Verb, admin.Retry)
	r := &replayRun{Replay: o, box: b, letters: letters, blockedLanes: map[string]int64{}, credit: 1, creditAddedAt: time.Now(), lastEnded: time.Now()}
	for i := range letters {
		if l := &letters[i]; l.Number > 0 && l.Prediction != FateApplied {
			l.Happened = l.Prediction
		}
	}
	err := r.run(ctx)
	for _, i := range r.dueLetters {
		r.letters[i].Happened = FateLeft
		r.letters[i].Why = "it is due now, and no consumer has processed it yet"
	}
	for i := range letters {
		if l := &letters[i]; l.Number > 0 && l.Happened == "" {
			l.Happened, l.Why = FateLeft, "the command ended before its turn; start the command again"
		}
	}
	return letters, err
}

func (r *replayRun) run(ctx context.Context) error {
	for {
		began, more, err := r.begin(ctx)
		if err != nil {
			return err
		}
		if len(r.dueLetters) == 0 && !more {
			return nil
		}
		if began > 0 || r.Work != nil {
			if err := r.work(ctx); err != nil {
				return err
			}
		}
		ended, err := r.checkDue(ctx)
		if err != nil {
			return err
		}
		if ended == 0 {
			if err := r.wait(ctx); err != nil {
				return err
			}
		}
	}
}

// begin retries the dead letters that no earlier dead letter blocks. The result more is true if dead letters
// remain.
func (r *replayRun) begin(ctx context.Context) (began int, more bool, err error) {
	r.fill()
	busy := map[string]bool{}
	for _, i := range r.dueLetters {
		markBusy(busy, r.letters[i].lanes)
	}
	isOpen := map[int]bool{}
	for _, i := range r.dueLetters {
		isOpen[i] = true
	}
	for i := range r.letters {
		l := &r.letters[i]
		if l.Number == 0 || l.Happened != "" || isOpen[i] {
			continue
		}
		if behind := r.blockingRow(l); behind != 0 {
			l.Happened, l.Why = FateWaits, fmt.Sprintf("row %d of the same key or identity waits before it; start the command again when that row has ended", behind)
			continue
		}
		free := !isAnyBusy(busy, l.lanes)
		markBusy(busy, l.lanes)
		if !free || len(r.dueLetters) >= mostOpen || r.credit < 1 {
			more = true
			continue
		}
		if err := r.retryLetter(ctx, i); err != nil {
			return began, true, err
		}
		began++
	}
	return began, more, nil
}

// fill adds credit for the elapsed time, up to the credit of two intervals.
func (r *replayRun) fill() {
	now := time.Now()
	if r.Rate <= 0 {
		r.credit = mostOpen
		return
	}
	most := max(1, r.Rate*2*lookAgain.Seconds())
	r.credit = min(most, r.credit+r.Rate*now.Sub(r.creditAddedAt).Seconds())
	r.creditAddedAt = now
}

// blockingRow returns the row that blocks the dead letter's lane for longer than the replay waits, or
// 0 if no lane of the dead letter is blocked.
func (r *replayRun) blockingRow(l *Letter) int64 {
	for _, lane := range l.lanes {
		if n := r.blockedLanes[lane]; n != 0 {
			return n
		}
	}
	return 0
}

func markBusy(busy map[string]bool, lanes []string) {
	for _, lane := range lanes {
		busy[lane] = true
	}
}

func isAnyBusy(busy map[string]bool, lanes []string) bool {
	for _, lane := range lanes {
		if busy[lane] {
			return true
		}
	}
	return false
}

// retryLetter retries one dead letter.
func (r *replayRun) retryLetter(ctx context.Context, i int) error {
	l := &r.letters[i]
	r.credit--
	r.reachPoint(BeforeRequeue)
	err := r.requeue(ctx, l)
	r.reachPoint(AfterRequeue)
	switch {
	case err == nil || errors.Is(err, admin.ErrDueAlready):
		r.failureCount = 0
		r.dueLetters = append(r.dueLetters, i)
		return nil
	case !errors.Is(err, semel.ErrChanged) && !errors.Is(err, semel.ErrState) && !errors.Is(err, semel.ErrConflict):
		return r.handleFailedRetry(ctx, l, err)
	}
	return r.box.refusedNow(ctx, l, err)
}

// handleFailedRetry handles a failed retry, for instance because of a lock on the row. handleFailedRetry leaves out the
// dead letter and the later dead letters of its lanes, and the replay continues with other dead letters.
// handleFailedRetry returns an error if the store cannot be read either, or after too many failures.
func (r *replayRun) handleFailedRetry(ctx context.Context, l *Letter, why error) error {
	why = fmt.Errorf("store %s: row %d: %w", r.box.Store, l.Number, why)
	if r.failureCount++; r.failureCount == mostFailed {
		return why
	}
	if _, err := r.box.readRows(ctx, []int64{l.Number}); err != nil {
		return errors.Join(why, err)
	}
	l.Happened, l.Why = FateLeft, errorText(why)
	for _, lane := range l.lanes {
		r.blockedLanes[lane] = l.Number
	}
	return nil
}

// requeue retries a row. If the row's revision changes because a redelivery was counted on the row, requeue
// tries again.
func (r *replayRun) requeue(ctx context.Context, l *Letter) error {
	act := store.Act{Verb: r.Verb.Recorded(), Who: r.Who, Why: r.Why, Row: l.Number}
	for tries := 0; ; tries++ {
		rows, err := r.box.readRows(ctx, []int64{l.Number})
		if err != nil {
			return err
		}
		row, found := rows[l.Number]
		switch {
		case !found:
			return semel.ErrChanged
		case row.State == store.StateReceived || row.State == store.StateInProgress:
			return admin.ErrDueAlready
		}
		if err := r.Verb.May(&row, false); err != nil {
			return err
		}
		err = errors.Join(r.box.Requeuer.Requeue(ctx, act, row.Seen())...)
		if errors.Is(err, admin.ErrDueAlready) {
			l.dueRevision = row.Revision
		}
		if !errors.Is(err, semel.ErrChanged) || tries == maxChanges {
			return err
		}
	}
}

func (r *replayRun) reachPoint(p ReplayPoint) {
	if r.At != nil {
		r.At(p)
	}
}

// work processes the due rows, consumer by consumer.
func (r *replayRun) work(ctx context.Context) error {
	numbers := map[string][]int64{}
	var names []string
	for _, i := range r.dueLetters {
		l := &r.letters[i]
		if numbers[l.Consumer] == nil {
			names = append(names, l.Consumer)
		}
		numbers[l.Consumer] = append(numbers[l.Consumer], l.Number)
	}
	for _, name := range names {
		switch {
		case r.Work != nil:
			if err := r.Work(ctx, name, numbers[name]); err != nil {
				return err
			}
		case r.Rouse != nil:
			r.Rouse(ctx, name)
		}
	}
	r.reachPoint(AfterWork)
	return nil
}

// checkDue reads the due rows and returns the number of rows that have ended.
func (r *replayRun) checkDue(ctx context.Context) (ended int, err error) {
	numbers := make([]int64, len(r.dueLetters))
	for k, i := range r.dueLetters {
		numbers[k] = r.letters[i].Number
	}
	rows, err := r.box.readRows(ctx, numbers)
	if err != nil {
		return 0, err
	}
	var open []int
	for _, i := range r.dueLetters {
		l := &r.letters[i]
		row, found := rows[l.Number]
		if !found {
			if err := r.box.setRemovedResult(ctx, l); err != nil {
				return 0, err
			}
			continue
		}
		fate, why, over := replayResult(row, maxRetryDelay)
		if !over || row.Revision == l.dueRevision {
			open = append(open, i)
			continue
		}
		l.Happened, l.Why = fate, why
		if fate == FateWaits {
			for _, lane := range l.lanes {
				r.blockedLanes[lane] = l.Number
			}
		}
	}
	ended = len(r.dueLetters) - len(open)
	if r.dueLetters = open; ended > 0 {
		r.lastEnded = time.Now()
		if r.Progress != nil {
			r.Progress(r.letters)
		}
	}
	return ended, nil
}

// wait waits for a short time. wait calls Alone once if no consumer processes the rows.
func (r *replayRun) wait(ctx context.Context) error {
	if !r.aloneReported && len(r.dueLetters) > 0 && time.Since(r.lastEnded) > noWorkerTimeout && r.Alone != nil {
		r.aloneReported = true
		r.Alone()
	}
	if r.Work != nil && len(r.dueLetters) > 0 {
		return pause(ctx, 5*lookAgain) // another process has claimed the remaining rows
	}
	return pause(ctx, lookAgain)
}
