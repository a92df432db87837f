// Package operate implements the commands that operators give for messages in an inbox: the commands list,
// show, retry and discard rows, and end the claims of rows. A command changes a row only if the row still has
// the revision that the operator saw. Every change is recorded with the person and the reason.
package operate

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/store"
)

// Box has the inbox of one store, and the further abilities of the store that commands need.
type Box struct {
	// Store is the store's name in the policy.
	Store string
	store.Inbox
	// Requeuer retries, releases, reopens and suppresses rows. Resolver records the outcomes of calls. Requeuer
	// and Resolver may be nil.
	Requeuer admin.Requeuer
	Resolver admin.Resolver
	// Editor replaces the payloads of rows; may be nil.
	Editor admin.Editor
	// CallKey returns the idempotency key that the endpoint receives for a row, or "" if the key is unknown.
	// CallKey may be nil.
	CallKey func(store.StoredRow) string
	// Markers reads markers, for instance the marker of a conflict's first content; may be nil.
	Markers admin.MarkerReader
	// Streams reads the streams of the store; nil if the store has no streams.
	Streams admin.Streams
	// Lines unblocks messages that wait behind a row; nil if messages in the store never wait behind others.
	Lines admin.Lines
}

// page is the number of rows that are read at once.
const page = 500

// Rows yields the rows that the filter chooses, ordered by number. Rows of a single stream are ordered by
// version. Rows reads pages of at most the filter's limit and stops after an error.
func (b Box) Rows(ctx context.Context, f store.RowFilter) iter.Seq2[store.StoredRow, error] {
	if f.Limit <= 0 || f.Limit > page {
		f.Limit = page
	}
	return func(yield func(store.StoredRow, error) bool) {
		for {
			rows, err := b.Inbox.Rows(ctx, f)
			if err != nil {
				yield(store.StoredRow{}, fmt.Errorf("store %s: %w", b.Store, err))
				return
			}
			for _, r := range rows {
				if !yield(r, nil) {
					return
				}
				if f.After = r.Number; f.Stream != nil {
					of := *f.Stream
					of.From, f.Stream = r.Version, &of
				}
			}
			if len(rows) < f.Limit {
				return
			}
		}
	}
}

// maxActs is the maximum number of recorded commands that are shown for a row.
const maxActs = 1000

// Show returns a row with its recorded commands. With payload set, Show includes headers and body.
func (b Box) Show(ctx context.Context, number int64, payload bool) (Detail, error) {
	rows, err := b.Inbox.Rows(ctx, store.RowFilter{Numbers: []int64{number}, Bodies: payload, Limit: 1})
	if err != nil {
		return Detail{}, fmt.Errorf("store %s: row %d: %w", b.Store, number, err)
	}
	if len(rows) == 0 {
		return Detail{}, fmt.Errorf("store %s has no row %d; ls shows what there is", b.Store, number)
	}
	acts, err := b.Acts(ctx, number, maxActs)
	if err != nil {
		return Detail{}, fmt.Errorf("store %s: changes of row %d: %w", b.Store, number, err)
	}
	detail := NewDetail(b.Store, rows[0], acts, payload)
	if detail.Edits, err = b.edits(ctx, rows[0], payload); err != nil {
		return Detail{}, err
	}
	if b.CallKey != nil {
		detail.CallKey = b.CallKey(rows[0])
	}
	if b.Lines != nil && rows[0].Place > 0 {
		if detail.Behind, err = b.Lines.First(ctx, number); err != nil {
			return Detail{}, fmt.Errorf("store %s: row %d: find the row that it waits for: %w", b.Store, number, err)
		}
		if detail.Behind == number {
			detail.Behind = 0
		}
	}
	if rows[0].Conflict {
		if detail.FirstContent, err = b.firstContent(ctx, rows[0].Key); err != nil {
			return Detail{}, fmt.Errorf("store %s: row %d: find the first content of its identity: %w", b.Store, number, err)
		}
	}
	return detail, nil
}

// Order is a command for the rows that a filter chooses.
type Order struct {
	Verb   admin.Verb
	Filter store.RowFilter
	// If Counted is true, other filters chose the rows in Filter.Numbers, and a person confirmed the number of
	// rows. If Counted is false, a person gave the numbers in Filter.Numbers.
	Counted bool
	// Group limits the command to the rows of this failure group; empty for no limit.
	Group string
	// Who and Why are written to the audit trail.
	Who, Why string
	// Outcome is the outcome that an operator found out for a call. Only verb Resolve uses Outcome.
	Outcome admin.Resolution
	// DryRun only reports what the command would do.
	DryRun bool
	// Worked returns why a row would not reach a handler, or nil if a handler would run: Retry and Send
	// refuse the row with this error. Worked is nil if the answer cannot be known.
	Worked func(store.StoredRow) error
}

// Result is the result for one row.
type Result struct {
	Store    string `json:"store"`
	Number   int64  `json:"number"`
	Consumer string `json:"consumer"`
	ID       string `json:"id"`
	// Reason is why the row was parked.
	Reason semel.Reason `json:"reason,omitempty"`
	// Result is one of the constants from Done to Failed.
	Result string `json:"result"`
	Error  string `json:"error,omitempty"`
	// Undo is the command that undoes the change of the row; empty if no command is certain to undo the change.
	Undo admin.Verb `json:"-"`
	// Conflict means that the row is a conflict.
	Conflict bool `json:"-"`
	// previousState is the state of the row before the command.
	previousState store.RowState
}

// The results of a command for one row.
const (
	Done  = "done"
	Would = "would be done"
	// Due means that the retry is recorded and the row waits for a process to claim it.
	Due = "due now"
	// Waits means that the handler ran and the row waits for the next attempt.
	Waits = "waits"
	// Discarded means that the row was retried and then discarded without an effect.
	Discarded = "discarded"
	// Refused means that the command changed nothing.
	Refused = "refused"
	// Left means that the command skipped a conflict, because the row with the first content is unfinished.
	Left = "left"
	// Failed means that the handler failed again, or that the store failed. If the handler failed, the row
	// has the error.
	Failed = "failed"
)

// OK reports whether the command succeeded for the row.
func (r Result) OK() bool {
	return r.Result == Done || r.Result == Would || r.Result == Due || r.Result == Left
}

// rejectsRetry reports whether the store would reject a retry of the row. The store rejects a retry if
// the row's identity was applied or if another row of the identity waits. For a conflict, the identity counts
// as applied if the first content took effect.
func (b Box) rejectsRetry(ctx context.Context, verb admin.Verb, row store.StoredRow) (bool, error) {
	if verb != admin.Retry && verb != admin.Send && verb != admin.Resolve && verb != admin.Reopen || b.Markers == nil || row.State.Outcome() == store.Waiting {
		return false, nil
	}
	m, found, err := b.Markers.Marker(ctx, row.Key)
	return found && (m.Outcome == store.Applied || m.Outcome == store.Waiting), err
}

// checkRow returns an error if the row itself shows that the command must not change the row. The
// store checks conditions that the row does not show, such as other rows of the identity. Only the store has
// the exact time; a dry run uses the local clock.
func (o Order) checkRow(row store.StoredRow) error {
	due := (o.DryRun || o.Verb == admin.Skip) && !row.DueAt.After(time.Now())
	err := o.Verb.May(&row, due)
	if err != nil && !errors.Is(err, admin.ErrDueAlready) {
		return err
	}
	if (o.Verb == admin.Retry || o.Verb == admin.Send) && o.Worked != nil {
		if err := o.Worked(row); err != nil {
			return err
		}
	}
	return err
}

// successResult returns the result of a successful change.
func (o Order) successResult() string {
	if o.Verb == admin.Retry || o.Verb == admin.Send || o.Verb == admin.Resolve && o.Outcome == admin.ResolvedNotDone {
		return Due
	}
	return Done
}

func resultOf(err error) string {
	switch {
	case errors.Is(err, semel.ErrChanged), errors.Is(err, semel.ErrConflict), errors.Is(err, semel.ErrState):
		return Refused
	default:
		return Failed
	}
}
