package operate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/store"
)

// Fate is the result of a replay for a dead letter.
type Fate string

// The fates. A preview predicts FateApplied, FateSkipped, FateConflict or FateRefused. The other fates appear
// only in results.
const (
	// FateApplied means that the handler runs and the effect commits. A preview cannot know whether the
	// handler will succeed, so as a prediction FateApplied only means that the handler runs.
	FateApplied Fate = "applied"
	// FateSkipped means that the identity was applied before, so the replay does nothing.
	FateSkipped Fate = "skipped as applied"
	// FateConflict means that another content of the identity was applied, or will be applied by this
	// replay.
	FateConflict Fate = "conflict"
	// FateRefused means that the dead letter cannot be replayed. Why has the reason.
	FateRefused Fate = "refused"
	// FateFailed means that the handler failed again and the message is parked again.
	FateFailed Fate = "failed again"
	// FateDiscarded means that the message was discarded without an effect.
	FateDiscarded Fate = "discarded"
	// FateWaits means that the message is due later or waits behind another message.
	FateWaits Fate = "waits"
	// FateLeft means that the replay ended before the message was processed, or that the outcome is unknown.
	FateLeft Fate = "left"
)

// Fates returns all fates in the order of reports.
func Fates() []Fate {
	return []Fate{FateApplied, FateSkipped, FateConflict, FateRefused, FateFailed, FateDiscarded, FateWaits, FateLeft}
}

// Letter is a dead letter with the predicted and the actual fate.
type Letter struct {
	Store string `json:"store"`
	// Number is the number of the dead letter's row. Number is 0 if the dead letter exists only in a topic.
	Number   int64  `json:"number,omitempty"`
	Consumer string `json:"consumer"`
	ID       string `json:"id"`
	IDBase64 string `json:"id_base64,omitempty"`
	// Place is the topic, partition and offset of a dead letter in a topic; empty for a dead letter with
	// only a row.
	Place      string       `json:"place,omitempty"`
	Reason     semel.Reason `json:"reason,omitempty"`
	Prediction Fate         `json:"predicted"`
	// Happened is the actual fate; empty in a dry run.
	Happened Fate `json:"result,omitempty"`
	// Why adds details to Happened, or to Prediction while Happened is empty.
	Why string `json:"why,omitempty"`

	key      semel.Key
	lanes    []string
	received time.Time
	print    semel.Fingerprint
	// dueRevision is the revision of a row that was due before the replay. While the row has this revision,
	// no process has worked on the row.
	dueRevision int64
	// originalRow is the row that is replayed instead, because this dead letter is a copy of that row's
	// message; 0 if the dead letter is not a copy.
	originalRow int64
}

// OK reports whether the dead letter needs no further command. A copy of an applied message needs no further
// command.
func (l Letter) OK() bool {
	fate := l.Happened
	if fate == "" {
		fate = l.Prediction
	}
	return fate == FateApplied || fate == FateSkipped
}

// Changed reports whether the actual fate differs from the predicted fate.
func (l Letter) Changed() bool { return l.Happened != "" && l.Happened != l.Prediction }

// Preview predicts the fates of rows that are replayed with verb Retry or Send. The returned dead letters are in the
// order of the replay, oldest first. Preview changes nothing.
func (b Box) Preview(ctx context.Context, verb admin.Verb, numbers []int64, worked func(store.StoredRow) error) ([]Letter, error) {
	rows, err := b.readRows(ctx, numbers)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(numbers, func(x, y int64) int { return compareReceived(rows, x, y) })
	var all []Letter
	taken := map[semel.Key]bool{} // the identities of earlier dead letters
	for _, n := range slices.Compact(numbers) {
		r, found := rows[n]
		if !found {
			all = append(all, Letter{Store: b.Store, Number: n, Prediction: FateRefused, Why: "there is no row with this number"})
			continue
		}
		l := letterOf(b.Store, r)
		if err := b.predict(ctx, verb, &l, r, worked, taken[r.Key]); err != nil {
			return nil, err
		}
		taken[r.Key] = taken[r.Key] || l.Prediction == FateApplied
		all = append(all, l)
	}
	return all, nil
}

// Letters returns the numbers of the rows that the filter chooses. If group is not empty, only rows of this
// failure group are returned. An interrupted replay can leave rows due or claimed; Letters includes due and
// claimed rows that still have the reason for which they were parked.
func (b Box) Letters(ctx context.Context, f store.RowFilter, group string) ([]int64, error) {
	numbers, err := b.Chosen(ctx, f, group)
	if err != nil || len(f.Numbers) > 0 || !slices.Contains(f.States, store.StateParked) {
		return numbers, err
	}
	f.States = []store.RowState{store.StateFailedRetryable, store.StateReceived, store.StateInProgress}
	for r, err := range b.Rows(ctx, f) {
		if err != nil {
			return nil, err
		}
		later := r.State == store.StateFailedRetryable && r.DueAt.After(r.ChangedAt)
		if r.Reason != "" && !later && (group == "" || Failure(r) == group) {
			numbers = append(numbers, r.Number)
		}
	}
	return numbers, nil
}

// compareReceived compares the receive times of rows x and y, for sorting. Missing rows come last.
func compareReceived(rows map[int64]store.StoredRow, x, y int64) int {
	a, there := rows[x]
	b, other := rows[y]
	switch {
	case !there || !other:
		return map[bool]int{true: -1, false: 1}[there && !other]
	case !a.ReceivedAt.Equal(b.ReceivedAt):
		return a.ReceivedAt.Compare(b.ReceivedAt)
	}
	return int(min(max(x-y, -1), 1))
}

func letterOf(st string, r store.StoredRow) Letter {
	l := Letter{Store: st, Number: r.Number, Consumer: r.Key.Consumer, Reason: r.Reason, key: r.Key, received: r.ReceivedAt, print: r.Fingerprint}
	l.ID, l.IDBase64 = text(r.Key.ID)
	l.lanes = []string{"id\x00" + r.Key.Consumer + "\x00" + r.Key.Source + "\x00" + r.Key.ID}
	if r.Message != nil && len(r.Message.Key) > 0 {
		l.lanes = append(l.lanes, "key\x00"+r.Key.Consumer+"\x00"+string(r.Message.Key))
	}
	return l
}

func (b Box) readRows(ctx context.Context, numbers []int64) (map[int64]store.StoredRow, error) {
	found := map[int64]store.StoredRow{}
	for some := range slices.Chunk(numbers, page) {
		rows, err := b.Inbox.Rows(ctx, store.RowFilter{Numbers: some, Limit: page})
		if err != nil {
			return nil, fmt.Errorf("store %s: %w", b.Store, err)
		}
		for _, r := range rows {
			found[r.Number] = r
		}
	}
	return found, nil
}

// predict sets the predicted fate of a row. The parameter taken means that an earlier dead letter of the same
// identity will be applied.
func (b Box) predict(ctx context.Context, verb admin.Verb, l *Letter, r store.StoredRow, worked func(store.StoredRow) error, taken bool) error {
	predicted := func(f Fate, why string) error {
		l.Prediction, l.Why = f, why
		return nil
	}
	switch {
	case r.State == store.StateCompleted:
		return predicted(FateSkipped, "")
	case r.State == store.StateDiscarded:
		return b.predictDiscarded(ctx, verb, l, r)
	case r.State == store.StateReceived || r.State == store.StateInProgress:
		if worked != nil {
			if err := worked(r); err != nil {
				return predicted(FateRefused, plainOf(r.Number, err))
			}
		}
		return predicted(FateApplied, "it is due already")
	case r.BodyRemoved:
		return predicted(FateRefused, "its payload was removed, so it cannot be replayed")
	}
	if err := (Order{Verb: verb, Worked: worked}).checkRow(r); err != nil {
		return predicted(FateRefused, plainOf(r.Number, err))
	}
	first, found, err := b.firstMarker(ctx, r)
	switch {
	case err != nil:
		return fmt.Errorf("store %s: row %d: look up its identity: %w", b.Store, r.Number, err)
	case r.State.Outcome() == store.Waiting:
		return predicted(FateApplied, "")
	case found && first.Outcome == store.Applied && !r.Fingerprint.Conflicts(first.Fingerprint):
		return predicted(FateSkipped, "")
	case found && (first.Outcome == store.Applied || first.Outcome == store.Waiting):
		return predicted(FateConflict, "another content of this identity is "+outcomes[first.Outcome]+conflictAdvice+"discard this row")
	case taken:
		return predicted(FateConflict, "an older message with another content of this identity is retried first")
	}
	return predicted(FateApplied, "")
}

// predictDiscarded predicts the fate of a discarded row. The reason names semel messages reopen only if the row can be
// reopened.
func (b Box) predictDiscarded(ctx context.Context, verb admin.Verb, l *Letter, r store.StoredRow) error {
	l.Prediction, l.Why = FateRefused, plainOf(r.Number, verb.May(&r, false))
	taken, err := b.rejectsRetry(ctx, admin.Reopen, r)
	if err != nil {
		return fmt.Errorf("store %s: row %d: look up its identity: %w", b.Store, r.Number, err)
	}
	if taken && r.Conflict {
		l.Why = "it is discarded, and another content of its identity is applied or waits, so it cannot be reopened"
	}
	return nil
}

// firstMarker returns the marker of the row's identity.
func (b Box) firstMarker(ctx context.Context, r store.StoredRow) (admin.StoredMarker, bool, error) {
	if b.Markers == nil {
		return admin.StoredMarker{}, false, nil
	}
	return b.Markers.Marker(ctx, r.Key)
}

// replayResult returns the fate that a replayed row shows. The function returns false while the row
// is unfinished.
func replayResult(r store.StoredRow, patience time.Duration) (fate Fate, why string, ended bool) {
	switch result, why := retryResult(r); result {
	case Done:
		return FateApplied, "", true
	case Discarded:
		return FateDiscarded, why, true
	case Failed:
		return FateFailed, why, true
	case Waits:
		return FateWaits, why, r.State == store.StateBlocked || r.DueAt.Sub(r.ChangedAt) > patience
	default:
		return FateLeft, "it is due now, and no consumer has processed it yet", false
	}
}

// refusedNow sets the fate of a dead letter that could not be retried, because another process was faster or
// the row's state changed.
func (b Box) refusedNow(ctx context.Context, l *Letter, act error) error {
	rows, err := b.readRows(ctx, []int64{l.Number})
	if err != nil {
		return err
	}
	r, found := rows[l.Number]
	if !found {
		return b.setRemovedResult(ctx, l)
	}
	first, marked, err := b.firstMarker(ctx, r)
	if err != nil {
		return fmt.Errorf("store %s: row %d: look up its identity: %w", b.Store, l.Number, err)
	}
	switch {
	case r.State == store.StateCompleted:
		l.Happened, l.Why = FateApplied, "another process has retried it"
	case errors.Is(act, admin.ErrOpen):
		l.Happened, l.Why = FateRefused, plainOf(r.Number, act)
	case errors.Is(act, semel.ErrConflict) && marked && !r.Fingerprint.Conflicts(first.Fingerprint):
		l.Happened, l.Why = FateSkipped, ""
	case errors.Is(act, semel.ErrConflict):
		l.Happened, l.Why = FateConflict, "another content of this identity took effect meanwhile"
	default:
		l.Happened, l.Why = FateRefused, plainOf(r.Number, act)
	}
	return nil
}

// setRemovedResult sets the fate of a dead letter whose row no longer exists. The row ended, and the retention
// or a person removed the row. Only the marker shows whether the message had an effect.
func (b Box) setRemovedResult(ctx context.Context, l *Letter) error {
	var m admin.StoredMarker
	found := false
	if b.Markers != nil {
		var err error
		if m, found, err = b.Markers.Marker(ctx, l.key); err != nil {
			return fmt.Errorf("store %s: row %d is gone: look up its identity: %w", b.Store, l.Number, err)
		}
	}
	switch {
	case !found:
		l.Happened, l.Why = FateLeft, "its row and its marker are gone: it is unknown whether it took effect"
	case l.print.Conflicts(m.Fingerprint):
		l.Happened, l.Why = FateConflict, "its row is gone, and another content of this identity is "+outcomes[m.Outcome]
	case m.Outcome == store.Applied:
		l.Happened, l.Why = FateApplied, "its row is gone, and its marker says that it was applied"
	case m.Outcome == store.Discarded:
		l.Happened, l.Why = FateDiscarded, "its row is gone, and its marker says that it was discarded"
	default:
		l.Happened, l.Why = FateLeft, "its row is gone, and its marker says that it is "+outcomes[m.Outcome]
	}
	return nil
}
