// Package operate is what operators do to messages that were set aside: list
// them, look at one, run it again, close it. Every act names the revision of
// the row that it saw and is recorded with who and why.
package operate

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/contract"
)

// Box is the inbox of one store.
type Box struct {
	// Store is its name in the policy.
	Store string
	contract.Inbox
	// Markers tells of a conflict's first content; it may be nil.
	Markers contract.MarkerReader
}

// page is how many rows are read at once.
const page = 500

// Rows yields the rows that the filter chooses, by number, in pages. It ends
// after an error.
func (b Box) Rows(ctx context.Context, f contract.RowFilter) iter.Seq2[contract.StoredRow, error] {
	f.Limit = page
	return func(yield func(contract.StoredRow, error) bool) {
		for {
			rows, err := b.Inbox.Rows(ctx, f)
			if err != nil {
				yield(contract.StoredRow{}, fmt.Errorf("store %s: %w", b.Store, err))
				return
			}
			for _, r := range rows {
				if !yield(r, nil) {
					return
				}
				f.After = r.Number
			}
			if len(rows) < page {
				return
			}
		}
	}
}

// maxActs is how many acts of a row are shown.
const maxActs = 1000

// Show returns one row with its history; payload asks for headers and body too.
func (b Box) Show(ctx context.Context, number int64, payload bool) (Detail, error) {
	rows, err := b.Inbox.Rows(ctx, contract.RowFilter{Numbers: []int64{number}, Bodies: payload, Limit: 1})
	if err != nil {
		return Detail{}, fmt.Errorf("store %s: row %d: %w", b.Store, number, err)
	}
	if len(rows) == 0 {
		return Detail{}, fmt.Errorf("store %s has no row %d; 'semel parked ls' shows what there is", b.Store, number)
	}
	acts, err := b.Acts(ctx, number, maxActs)
	if err != nil {
		return Detail{}, fmt.Errorf("store %s: acts on row %d: %w", b.Store, number, err)
	}
	detail := NewDetail(b.Store, rows[0], acts, payload)
	if rows[0].Conflict {
		if detail.FirstContent, err = b.firstContent(ctx, rows[0].Key); err != nil {
			return Detail{}, fmt.Errorf("store %s: row %d: what the conflict is with: %w", b.Store, number, err)
		}
	}
	return detail, nil
}

// Verb is an act.
type Verb string

// The acts.
const (
	Retry   Verb = "retry"
	Discard Verb = "discard"
)

// Order is what to do to the rows that a filter chooses.
type Order struct {
	Verb   Verb
	Filter contract.RowFilter
	// Who and Why are recorded with every act.
	Who, Why string
	// DryRun only says what would be done.
	DryRun bool
	// Handlers run a row's message again, by consumer; for Retry.
	Handlers map[string]func(context.Context, contract.StoredRow, contract.Act) error
}

// Result is what became of one row.
type Result struct {
	Store    string `json:"store"`
	Number   int64  `json:"number"`
	Consumer string `json:"consumer"`
	ID       string `json:"id"`
	// Reason is why the row was set aside.
	Reason semel.Reason `json:"reason,omitempty"`
	// Result is "done", "would be done", "refused" (nothing was done) or
	// "failed" (the handler failed again, which the row now says).
	Result string `json:"result"`
	Error  string `json:"error,omitempty"`
}

// The results.
const (
	Done    = "done"
	Would   = "would be done"
	Refused = "refused"
	Failed  = "failed"
)

// OK reports whether nothing stood in the way.
func (r Result) OK() bool { return r.Result == Done || r.Result == Would }

// Carry carries out an order row by row, each in a transaction of its own, and
// yields what became of each. An error ends it: the store cannot be read, or
// ctx is over. What was yielded before is done.
func (b Box) Carry(ctx context.Context, o Order) iter.Seq2[Result, error] {
	return func(yield func(Result, error) bool) {
		numbers, err := b.chosen(ctx, o.Filter)
		if err != nil {
			yield(Result{}, err)
			return
		}
		for _, n := range numbers {
			if ctx.Err() != nil {
				yield(Result{}, ctx.Err())
				return
			}
			result, err := b.one(ctx, o, n)
			if !yield(result, err) || err != nil {
				return
			}
		}
	}
}

// chosen returns the numbers before the first act: an act may change what the
// filter chooses. Numbers that are asked for and not there stay, to be reported.
func (b Box) chosen(ctx context.Context, f contract.RowFilter) ([]int64, error) {
	if len(f.Numbers) > 0 {
		return slices.Compact(slices.Sorted(slices.Values(f.Numbers))), nil
	}
	var numbers []int64
	for r, err := range b.Rows(ctx, f) {
		if err != nil {
			return nil, err
		}
		numbers = append(numbers, r.Number)
	}
	return numbers, nil
}

// one reads a row with its body and acts on it.
func (b Box) one(ctx context.Context, o Order, number int64) (Result, error) {
	result := Result{Store: b.Store, Number: number, Result: Refused}
	rows, err := b.Inbox.Rows(ctx, contract.RowFilter{Numbers: []int64{number}, Bodies: o.Verb == Retry, Limit: 1})
	if err != nil {
		return result, fmt.Errorf("store %s: row %d: %w", b.Store, number, err)
	}
	if len(rows) == 0 {
		result.Error = "there is no row of this number"
		return result, nil
	}
	row := rows[0]
	result.Consumer, result.ID, result.Reason = row.Key.Consumer, row.Key.ID, row.Reason
	if err := o.allows(row); err != nil {
		result.Error = plain(err)
		return result, nil
	}
	if !o.DryRun {
		return result.after(b.act(ctx, o, row), Done), nil
	}
	applied, err := b.applied(ctx, o.Verb, row.Key)
	switch {
	case err != nil:
		return result, fmt.Errorf("store %s: row %d: what became of its identity: %w", b.Store, number, err)
	case applied:
		return result.after(fmt.Errorf("row %d: %w", number, semel.ErrConflict), Would), nil
	}
	return result.after(nil, Would), nil
}

// applied reports whether a retry would meet its identity applied, which a store
// refuses: that of a conflict is, where the first content took effect.
func (b Box) applied(ctx context.Context, verb Verb, key semel.Key) (bool, error) {
	if verb != Retry || b.Markers == nil {
		return false, nil
	}
	m, found, err := b.Markers.Marker(ctx, key)
	return found && m.Outcome == semel.Applied, err
}

// after is the result with what err says of it, or with what stands for none.
func (r Result) after(err error, none string) Result {
	if err == nil {
		r.Result = none
		return r
	}
	r.Result, r.Error = resultOf(err), plain(err)
	if errors.Is(err, semel.ErrConflict) {
		r.Error += "; find out from the producer which content is right, correct the effect by hand if it is this one, and discard this row"
	}
	return r
}

// plain is the text of an error, in which those of the library go without the
// prefix that names it: in the middle of a line it says nothing.
func plain(err error) string {
	text := err.Error()
	for _, inner := range []error{semel.ErrChanged, semel.ErrConflict, semel.ErrState} {
		text = strings.ReplaceAll(text, inner.Error(), strings.TrimPrefix(inner.Error(), "semel: "))
	}
	return text
}

// allows says what of an order can be judged without the store.
func (o Order) allows(row contract.StoredRow) error {
	end := contract.StateDiscarded
	if o.Verb == Retry {
		end = contract.StateCompleted
	}
	if !row.State.CanBecome(end) {
		return fmt.Errorf("it is %s: %w", row.State, semel.ErrState)
	}
	if o.Verb == Retry {
		if o.Handlers[row.Key.Consumer] == nil {
			return fmt.Errorf("the policy has no consumer %q; name the policy file of that consumer", row.Key.Consumer)
		}
		if row.Surrogate {
			return fmt.Errorf("%s: %s", row.Reason, neverRuns(row.Reason))
		}
	}
	return nil
}

// neverRuns says why a row whose message has no identity of its own is not run
// again, and what to do.
func neverRuns(reason semel.Reason) string {
	switch reason {
	case semel.ReasonTooLarge:
		return "only its beginning was kept; raise max_body at the consumer, or the source's own limit, have it sent again, and discard this row"
	case semel.ReasonForeign:
		return "the consumer's only leaves it out, so that its identity was never read; if it is the consumer's, correct only in the policy and have it sent again; discard this row"
	case semel.ReasonMalformed:
		return "the source could not read it; have it sent again as the source's format wants it, and discard this row"
	}
	return "without an identity it cannot take effect once; have it sent again with one, and discard this row"
}

func (b Box) act(ctx context.Context, o Order, row contract.StoredRow) error {
	act := contract.Act{Verb: string(o.Verb), Who: o.Who, Why: o.Why, Row: row.Number}
	if o.Verb == Discard {
		return b.Discard(ctx, row.Number, row.Revision, act)
	}
	return o.Handlers[row.Key.Consumer](ctx, row, act)
}

func resultOf(err error) string {
	switch {
	case errors.Is(err, semel.ErrChanged), errors.Is(err, semel.ErrConflict), errors.Is(err, semel.ErrState):
		return Refused
	default:
		return Failed
	}
}
