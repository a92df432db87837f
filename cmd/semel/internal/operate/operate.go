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
	// Requeuer lets rows be worked on again, Resolver records what became of calls; each may
	// be nil, and is asked for nothing else.
	Requeuer admin.Requeuer
	Resolver admin.Resolver
	// IntentHolder keeps rows from being worked on; it may be nil, and is asked for Suppress
	// alone.
	IntentHolder admin.IntentHolder
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
	Verb   Verb
	Filter store.RowFilter
	// Counted reports that Filter.Numbers are the rows that other filters chose, when they were counted for a
	// question. Otherwise a person named these rows.
	Counted bool
	// Group, if not empty, is the failure group of which the rows are, beside the filter.
	Group string
	// Who and Why are recorded with every act.
	Who, Why string
	// Outcome, for Resolve, is what somebody found out.
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
	// closed: the row was discarded before the act.
	closed bool
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
func (b Box) taken(ctx context.Context, verb Verb, row store.StoredRow) (bool, error) {
	if verb != Retry && verb != Send && verb != Resolve && verb != Reopen || b.Markers == nil || row.State.Outcome() == store.Waiting {
		return false, nil
	}
	m, found, err := b.Markers.Marker(ctx, row.Key)
	return found && (m.Outcome == store.Applied || m.Outcome == store.Waiting), err
}

// allows says what of an order can be judged without the store.
func (o Order) allows(row store.StoredRow) error {
	if row.Reason == semel.ReasonErased {
		return fmt.Errorf("it was erased, and nothing is left of it that could be worked on; what the producer sends again under this identity is a copy: %w", semel.ErrState)
	}
	if o.Verb == Reopen {
		return admin.MayReopen(row.Number, row.State, row.Reason, row.UnknownOutcome(), row.BodyRemoved)
	}
	if o.Verb == Pass {
		if row.State == store.StateBlocked {
			return fmt.Errorf("it waits itself; show names the row that is first, and skip lets all pass that: %w", semel.ErrState)
		}
		if row.Place == 0 && row.State == store.StateReceived && row.DueAt.After(time.Now()) {
			return fmt.Errorf("no message waits behind it; semel inbox retry makes it due now: %w", semel.ErrState)
		}
		if row.Place == 0 {
			return fmt.Errorf("no message waits behind it: with on_parked: block those of its key do, or of its partition, while it waits or is parked: %w", semel.ErrState)
		}
		return nil
	}
	switch e := o.Verb.event(row.State); {
	case e == store.RowRetried || e == store.RowReleased:
		if err := admin.MayRequeue(&row, e, false); err != nil {
			return o.advise(row, err)
		}
	default:
		if _, legal := row.State.After(e); !legal {
			return o.advise(row, nil)
		}
	}
	if o.Verb == Resolve {
		return admin.MayResolve(row.Number, row.State, row.UnknownOutcome())
	}
	if o.Verb == Retry && row.Reason == semel.ReasonSuppressed && row.State == store.StateParked {
		return fmt.Errorf("it was suppressed, and a retry of what failed does not send it; semel intents send does: %w", semel.ErrState)
	}
	if o.Verb == Retry || o.Verb == Send {
		if o.Worked != nil {
			if err := o.Worked(row.Key.Consumer); err != nil {
				return err
			}
		}
		if row.Surrogate {
			return fmt.Errorf("%s: %s", row.Reason, neverRuns(row.Reason))
		}
	}
	return nil
}

// advise returns the error of an act that a row does not allow, with what to do. refused is the contract's
// error, which says enough about a row whose state is not the reason.
func (o Order) advise(row store.StoredRow, refused error) error {
	if _, legal := row.State.After(o.Verb.event(row.State)); legal {
		return refused
	}
	why := o.runsAnyway(row.State)
	switch {
	case why != "":
		return fmt.Errorf("it is %s: %s: %w", row.State, why, semel.ErrState)
	case row.State == store.StateBlocked && o.Verb == Retry && row.Place > 0:
		return fmt.Errorf("it waits behind another message of its key, or of its partition; show names that, and skip lets it pass: %w", semel.ErrState)
	case row.State == store.StateBlocked && o.Verb == Retry:
		return fmt.Errorf("it waits for an earlier version of stream %q, which frees it; semel gaps shows which is missing, and lets it go on without: %w", row.Stream, semel.ErrState)
	}
	return fmt.Errorf("it is %s: %w", row.State, semel.ErrState)
}

// dueAnyway is the store's answer to an act, which for a received row that is due says that the
// row needs none. One that a database dated ahead, whose clock was ahead, is due later.
func (o Order) dueAnyway(row store.StoredRow, err error) error {
	if why := o.runsAnyway(row.State); why != "" && errors.Is(err, admin.ErrDueAlready) {
		return fmt.Errorf("it is %s: %s: %w", row.State, why, semel.ErrState)
	}
	return err
}

// runsAnyway says why a row needs no act to be worked on, and what to do where it is not;
// empty where it does.
func (o Order) runsAnyway(state store.RowState) string {
	switch {
	case o.Verb != Retry && o.Verb != Send && o.Verb != Release:
		return ""
	case state == store.StateReceived:
		return "it is due without this, and whoever runs the consumer works on it"
	case state == store.StateInProgress && o.Verb != Release:
		return "who claimed it works on it; semel inbox release ends the claim of a process that stands still"
	}
	return ""
}

// neverRuns says why a row whose message has no identity of its own is not run
// again, and what to do.
func neverRuns(reason semel.Reason) string {
	switch reason {
	case semel.ReasonTooLarge:
		return "only its beginning was kept; raise max_body at the consumer, or the source's own limit, have it sent again, and discard this row"
	case semel.ReasonFiltered:
		return "the consumer's only leaves it out, so that its identity was never read; if it is the consumer's, correct only in the policy and have it sent again; discard this row"
	case semel.ReasonMalformed:
		return "the source could not read it; have it sent again as the source's format wants it, and discard this row"
	}
	return "without an identity it cannot take effect once; have it sent again with one, and discard this row"
}

func resultOf(err error) string {
	switch {
	case errors.Is(err, semel.ErrChanged), errors.Is(err, semel.ErrConflict), errors.Is(err, semel.ErrState):
		return Refused
	default:
		return Failed
	}
}
