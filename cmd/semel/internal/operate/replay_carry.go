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

// Replay replays dead letters. Each is retried, in the given order, once all earlier dead letters with
// its key or its identity have ended.
type Replay struct {
	// Verb is the command that makes them due: Retry, the default, or Send for intents.
	Verb admin.Verb
	// Who and Why are recorded with every dead letter.
	Who, Why string
	// Work processes due rows of one consumer in this process; nil leaves them to running consumers.
	Work func(ctx context.Context, consumer string, numbers []int64) error
	// Rouse notifies the running consumers that rows are due; it may be nil.
	Rouse func(ctx context.Context, consumer string)
	// Rate limits the dead letters retried per second; 0: no limit.
	Rate float64
	// Progress is called with the dead letters after each change; it may be nil.
	Progress func([]Letter)
	// Alone is called once if no consumer processes the due rows; it may be nil.
	Alone func()
	// At is called at the crash points of a replay, for tests; At may be nil.
	At func(ReplayPoint)
}

// ReplayPoint is a point in a replay, or an edit, at which a process may die.
type ReplayPoint string

// The points of a replay, and of an edit.
const (
	BeforeEdit    ReplayPoint = "before edit"
	AfterEdit     ReplayPoint = "after edit"
	BeforeRequeue ReplayPoint = "before requeue"
	AfterRequeue  ReplayPoint = "after requeue"
	AfterWork     ReplayPoint = "after work"
)

const (
	// mostOpen limits the dead letters that are due and unfinished at a time.
	mostOpen = 200
	// lookAgain is the interval in which dead letters processed elsewhere are read.
	lookAgain = 100 * time.Millisecond
	// alone is how long no dead letter must end until Alone is called.
	alone = 5 * time.Second
	// patience is how far away the next attempt of a dead letter may be for the replay to wait for it.
	patience = time.Minute
	// mostFailed limits the consecutive dead letters that the store fails to retry, because each may wait
	// as long as the store's lock timeout.
	mostFailed = 3
	// changes limits how often a row may change during a command: each new copy is counted on it.
	changes = 20
)

// replaying is a replay in progress.
type replaying struct {
	Replay
	box     Box
	letters []Letter
	open    []int // indexes of dead letters that are due
	held    map[string]int64
	credit  float64   // how many dead letters may be retried now, if there is a rate
	filled  time.Time // time of the last credit
	ended   time.Time // when the last dead letter ended
	told    bool
	failed  int // consecutive dead letters that the store failed to retry
}

// Replay replays the dead letters that are predicted to be applied and writes the fate of all. After
// an error the fates show how far it came; rows that are due stay due.
func (b Box) Replay(ctx context.Context, letters []Letter, o Replay) ([]Letter, error) {
	o.Verb = cmp.Or(o.Verb, admin.Retry)
	r := &replaying{Replay: o, box: b, letters: letters, held: map[string]int64{}, credit: 1, filled: time.Now(), ended: time.Now()}
	for i := range letters {
		if l := &letters[i]; l.Number > 0 && l.Prediction != FateApplied {
			l.Happened = l.Prediction
		}
	}
	err := r.run(ctx)
	for _, i := range r.open {
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

func (r *replaying) run(ctx context.Context) error {
	for {
		began, more, err := r.begin(ctx)
		if err != nil {
			return err
		}
		if len(r.open) == 0 && !more {
			return nil
		}
		if began > 0 || r.Work != nil {
			if err := r.work(ctx); err != nil {
				return err
			}
		}
		ended, err := r.look(ctx)
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

// begin retries dead letters whose turn has come, and reports whether others are left.
func (r *replaying) begin(ctx context.Context) (began int, more bool, err error) {
	r.fill()
	busy := map[string]bool{}
	for _, i := range r.open {
		mark(busy, r.letters[i].lanes)
	}
	isOpen := map[int]bool{}
	for _, i := range r.open {
		isOpen[i] = true
	}
	for i := range r.letters {
		l := &r.letters[i]
		if l.Number == 0 || l.Happened != "" || isOpen[i] {
			continue
		}
		if behind := r.behind(l); behind != 0 {
			l.Happened, l.Why = FateWaits, fmt.Sprintf("row %d of the same key or identity waits before it; start the command again when that row has ended", behind)
			continue
		}
		free := !marked(busy, l.lanes)
		mark(busy, l.lanes)
		if !free || len(r.open) >= mostOpen || r.credit < 1 {
			more = true
			continue
		}
		if err := r.due(ctx, i); err != nil {
			return began, true, err
		}
		began++
	}
	return began, more, nil
}

// fill adds credit for the elapsed time, for at most two intervals at once.
func (r *replaying) fill() {
	now := time.Now()
	if r.Rate <= 0 {
		r.credit = mostOpen
		return
	}
	most := max(1, r.Rate*2*lookAgain.Seconds())
	r.credit = min(most, r.credit+r.Rate*now.Sub(r.filled).Seconds())
	r.filled = now
}

// behind returns the row of one of the dead letter's lanes that waits for longer than this replay
// does.
func (r *replaying) behind(l *Letter) int64 {
	for _, lane := range l.lanes {
		if n := r.held[lane]; n != 0 {
			return n
		}
	}
	return 0
}

func mark(busy map[string]bool, lanes []string) {
	for _, lane := range lanes {
		busy[lane] = true
	}
}

func marked(busy map[string]bool, lanes []string) bool {
	for _, lane := range lanes {
		if busy[lane] {
			return true
		}
	}
	return false
}

// due retries one dead letter.
func (r *replaying) due(ctx context.Context, i int) error {
	l := &r.letters[i]
	r.credit--
	r.at(BeforeRequeue)
	err := r.requeue(ctx, l)
	r.at(AfterRequeue)
	switch {
	case err == nil || errors.Is(err, admin.ErrDueAlready):
		r.failed = 0
		r.open = append(r.open, i)
		return nil
	case !errors.Is(err, semel.ErrChanged) && !errors.Is(err, semel.ErrState) && !errors.Is(err, semel.ErrConflict):
		return r.notDue(ctx, l, err)
	}
	return r.box.refusedNow(ctx, l, err)
}

// notDue leaves a dead letter that the store failed to retry, for instance because of a lock on its
// row, together with the dead letters of its lanes, and continues with others. notDue returns an
// error if the store cannot be read either, or if too many fail.
func (r *replaying) notDue(ctx context.Context, l *Letter, why error) error {
	why = fmt.Errorf("store %s: row %d: %w", r.box.Store, l.Number, why)
	if r.failed++; r.failed == mostFailed {
		return why
	}
	if _, err := r.box.standing(ctx, []int64{l.Number}); err != nil {
		return errors.Join(why, err)
	}
	l.Happened, l.Why = FateLeft, plain(why)
	for _, lane := range l.lanes {
		r.held[lane] = l.Number
	}
	return nil
}

// requeue retries a row, whose revision changes with each copy that is counted on it.
func (r *replaying) requeue(ctx context.Context, l *Letter) error {
	act := store.Act{Verb: r.Verb.Recorded(), Who: r.Who, Why: r.Why, Row: l.Number}
	for tries := 0; ; tries++ {
		rows, err := r.box.standing(ctx, []int64{l.Number})
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
			l.seen = row.Revision
		}
		if !errors.Is(err, semel.ErrChanged) || tries == changes {
			return err
		}
	}
}

func (r *replaying) at(p ReplayPoint) {
	if r.At != nil {
		r.At(p)
	}
}

// work processes the due rows, consumer by consumer.
func (r *replaying) work(ctx context.Context) error {
	numbers := map[string][]int64{}
	var names []string
	for _, i := range r.open {
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
	r.at(AfterWork)
	return nil
}

// look reads the rows that are due and returns how many have ended.
func (r *replaying) look(ctx context.Context) (ended int, err error) {
	numbers := make([]int64, len(r.open))
	for k, i := range r.open {
		numbers[k] = r.letters[i].Number
	}
	rows, err := r.box.standing(ctx, numbers)
	if err != nil {
		return 0, err
	}
	var open []int
	for _, i := range r.open {
		l := &r.letters[i]
		row, found := rows[l.Number]
		if !found {
			if err := r.box.gone(ctx, l); err != nil {
				return 0, err
			}
			continue
		}
		fate, why, over := happened(row, patience)
		if !over || row.Revision == l.seen {
			open = append(open, i)
			continue
		}
		l.Happened, l.Why = fate, why
		if fate == FateWaits {
			for _, lane := range l.lanes {
				r.held[lane] = l.Number
			}
		}
	}
	ended = len(r.open) - len(open)
	if r.open = open; ended > 0 {
		r.ended = time.Now()
		if r.Progress != nil {
			r.Progress(r.letters)
		}
	}
	return ended, nil
}

// wait waits a while, and calls Alone once if no consumer processes the rows.
func (r *replaying) wait(ctx context.Context) error {
	if !r.told && len(r.open) > 0 && time.Since(r.ended) > alone && r.Alone != nil {
		r.told = true
		r.Alone()
	}
	if r.Work != nil && len(r.open) > 0 {
		return pause(ctx, 5*lookAgain) // another process has claimed what is left
	}
	return pause(ctx, lookAgain)
}
