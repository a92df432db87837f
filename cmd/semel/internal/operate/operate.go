// Package operate is what operators do to messages in an inbox, that were set aside
// or wait: list them, look at one, let it be worked on again, end its claim, close
// it. Every act names the revision of
// the row that it saw and is recorded with who and why.
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

// Box is the inbox of one store.
type Box struct {
	// Store is its name in the policy.
	Store string
	store.Inbox
	// Requeuer retries, releases, reopens and suppresses rows. Resolver records the outcomes of
	// calls. Each may be nil, and is used for nothing else.
	Requeuer admin.Requeuer
	Resolver admin.Resolver
	// Editor gives rows other payloads; it may be nil, and is asked for nothing else.
	Editor admin.Editor
	// CallKey is the idempotency key that the other side gets with the call for a row; empty
	// where nobody can tell. It may be nil.
	CallKey func(store.StoredRow) string
	// Markers tells of a conflict's first content; it may be nil.
	Markers admin.MarkerReader
	// Streams are the store's; nil if it keeps none.
	Streams admin.Streams
	// Lines lets followers pass a row; nil if the store keeps none.
	Lines admin.Lines
}

// page is how many rows are read at once.
const page = 500

// Rows yields the rows that the filter chooses, by number, those of one stream by
// version, in pages of at most its limit. It ends after an error.
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

// maxActs is how many acts of a row are shown.
const maxActs = 1000

// Show returns one row with its history; payload asks for headers and body too.
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
		return Detail{}, fmt.Errorf("store %s: acts on row %d: %w", b.Store, number, err)
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
			return Detail{}, fmt.Errorf("store %s: row %d: what it waits for: %w", b.Store, number, err)
		}
		if detail.Behind == number {
			detail.Behind = 0
		}
	}
	if rows[0].Conflict {
		if detail.FirstContent, err = b.firstContent(ctx, rows[0].Key); err != nil {
			return Detail{}, fmt.Errorf("store %s: row %d: what the conflict is with: %w", b.Store, number, err)
		}
	}
	return detail, nil
}

// Order is what to do to the rows that a filter chooses.
type Order struct {
	Verb   admin.Verb
	Filter store.RowFilter
	// Counted reports that Filter.Numbers are the rows that other filters chose, when they were counted for a
	// question. Otherwise a person named these rows.
	Counted bool
	// Group, if not empty, is the failure group of which the rows are, beside the filter.
	Group string
	// Who and Why are recorded with every act.
	Who, Why string
	// Outcome, for Resolve, is the outcome of the call that an operator found out.
	Outcome admin.Resolution
	// DryRun only says what would be done.
	DryRun bool
	// Worked says of the consumer of a row why nobody would work on it, and is nil where
	// somebody does; it may be nil itself, where nobody can tell. For Retry and Send.
	Worked func(consumer string) error
}

// Result is what became of one row.
type Result struct {
	Store    string `json:"store"`
	Number   int64  `json:"number"`
	Consumer string `json:"consumer"`
	ID       string `json:"id"`
	// Reason is why the row was set aside.
	Reason semel.Reason `json:"reason,omitempty"`
	// Result is one of the constants below.
	Result string `json:"result"`
	Error  string `json:"error,omitempty"`
	// seen is the revision of a row that was due before; with it nobody has worked on
	// the row yet.
	seen int64
	// was is the state of the row before the act.
	was store.RowState
}

// The results.
const (
	Done  = "done"
	Would = "would be done"
	// Due: a retry is recorded, and the row waits for who claims it.
	Due = "due now"
	// Waits: it was worked on, and waits for its next try.
	Waits = "waits"
	// Discarded: it was retried, and closed without an effect.
	Discarded = "discarded"
	// Refused: nothing was done.
	Refused = "refused"
	// Left: a conflict that an order of many rows leaves, since the first content is not closed.
	Left = "left"
	// Failed: the handler failed again, which the row says, or the store did.
	Failed = "failed"
)

// OK reports whether nothing stood in the way.
func (r Result) OK() bool {
	return r.Result == Done || r.Result == Would || r.Result == Due || r.Result == Left
}

// taken reports whether a retry would meet its identity applied, or another of its
// rows waiting, which a store refuses: that of a conflict is applied where the first
// content took effect.
func (b Box) taken(ctx context.Context, verb admin.Verb, row store.StoredRow) (bool, error) {
	if verb != admin.Retry && verb != admin.Send && verb != admin.Resolve && verb != admin.Reopen || b.Markers == nil || row.State.Outcome() == store.Waiting {
		return false, nil
	}
	m, found, err := b.Markers.Marker(ctx, row.Key)
	return found && (m.Outcome == store.Applied || m.Outcome == store.Waiting), err
}

// allows returns why the order must not act on a row, as far as that is known without the store, which knows
// other rows and has the clock. A dry run takes this clock.
func (o Order) allows(row store.StoredRow) error {
	due := (o.DryRun || o.Verb == admin.Skip) && !row.DueAt.After(time.Now())
	err := o.Verb.May(&row, due)
	if err != nil && !errors.Is(err, admin.ErrDueAlready) {
		return err
	}
	if (o.Verb == admin.Retry || o.Verb == admin.Send) && o.Worked != nil {
		if err := o.Worked(row.Key.Consumer); err != nil {
			return err
		}
	}
	return err
}

// done is the result of an act that succeeded.
func (o Order) done() string {
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
