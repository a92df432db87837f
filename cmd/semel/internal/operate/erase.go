package operate

import (
	"context"
	"fmt"
	"slices"

	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/legible"
	"github.com/semel-go/semel/store"
)

// Erasure is what to erase of a store.
type Erasure struct {
	Filter admin.ErasureFilter
	// Who and Why are recorded with every act.
	Who, Why string
	// DryRun only counts.
	DryRun bool
	// Discard closes what is unfinished before.
	Discard bool
	// Doubted, if not nil, is called by a DryRun for each row that Discard would close and
	// that has a call under way or of unknown outcome.
	Doubted func(store.StoredRow)
	// Shown is how many of those that are left are told of; all are counted. 0: all.
	Shown int
	// Progress, if not nil, is told the counts after each transaction.
	Progress func(ErasureReport)
}

// ErasureReport is what was erased of a store, or would be.
type ErasureReport struct {
	Store string `json:"store"`
	// Identities are how many, with so many rows of the inbox, results and leased keys.
	Identities int64 `json:"identities"`
	Inbox      int64 `json:"inbox"`
	Results    int64 `json:"results"`
	Keys       int64 `json:"keys"`
	// Discarded are the rows that were closed before.
	Discarded int64 `json:"discarded"`
	// Left is how many rows stood in the way, List what of them is told.
	Left int64           `json:"left"`
	List []LeftOfErasure `json:"left_rows"`
}

// LeftOfErasure is what stood in the way.
type LeftOfErasure struct {
	Row      int64            `json:"row"`
	Consumer string           `json:"consumer"`
	Source   string           `json:"source"`
	ID       string           `json:"id"`
	State    store.RowState   `json:"state"`
	Why      admin.ErasureWhy `json:"why"`
	// Error says why it could not be discarded, where that was asked for.
	Error string `json:"error,omitempty"`
}

// idsAtOnce is how many ids are asked for in one statement.
const idsAtOnce = 500

// Erase erases what the filter chooses, some in each transaction, until nothing is left to
// look at. After an error, or the end of ctx, what the report says is done; the same erasure
// again goes on with the rest.
func (b Box) Erase(ctx context.Context, from admin.Eraser, e Erasure) (ErasureReport, error) {
	report := ErasureReport{Store: b.Store, List: []LeftOfErasure{}}
	all := [][]string{nil}
	if len(e.Filter.IDs) > 0 {
		all = slices.Collect(slices.Chunk(slices.Compact(slices.Sorted(slices.Values(e.Filter.IDs))), idsAtOnce))
	}
	for _, ids := range all {
		o := admin.Erasing{Filter: e.Filter, DryRun: e.DryRun, Act: store.Act{Verb: "erase", Who: e.Who, Why: e.Why}}
		for o.Filter.IDs = ids; o.After.Part != admin.ErasureDone; {
			done, err := b.eraseSome(ctx, from, &e, o, &report)
			if err != nil {
				return report, fmt.Errorf("store %s: %w", b.Store, err)
			}
			o.After = done.Next
			if e.Progress != nil {
				e.Progress(report)
			}
		}
	}
	return report, nil
}

// eraseSome erases some. If what is unfinished is to be discarded it is, and the same part is
// looked at again: with what is erased out of the way, it reaches further.
func (b Box) eraseSome(ctx context.Context, from admin.Eraser, e *Erasure, o admin.Erasing, report *ErasureReport) (admin.Erased, error) {
	for {
		done, err := from.Erase(ctx, o)
		if err != nil {
			return done, err
		}
		report.add(&done)
		var kept map[int64]Result
		if rows := unfinished(done.Left); e.Discard && !e.DryRun && len(rows) > 0 {
			var n int64
			n, kept, err = b.discarded(ctx, e, rows)
			report.Discarded += n
			if err != nil {
				return done, err
			}
			if n > 0 {
				continue
			}
		}
		report.leave(e, done.Left, kept)
		return done, b.doubt(ctx, e, unfinished(done.Left))
	}
}

// doubt tells of rows with a call that may have taken effect, or may yet.
func (b Box) doubt(ctx context.Context, e *Erasure, rows []int64) error {
	if e.Doubted == nil || !e.DryRun || len(rows) == 0 {
		return nil
	}
	for r, err := range b.Rows(ctx, store.RowFilter{Numbers: rows}) {
		if err != nil {
			return err
		}
		if r.UnknownOutcome() {
			e.Doubted(r)
		}
	}
	return nil
}

// unfinished are the rows that are in the way and may be discarded.
func unfinished(left []admin.ErasureLeft) (rows []int64) {
	for _, l := range left {
		if l.Why == admin.ErasureUnfinished {
			rows = append(rows, l.Row)
		}
	}
	return rows
}

// discarded discards rows, and says how many, and what became of the others.
func (b Box) discarded(ctx context.Context, e *Erasure, rows []int64) (n int64, others map[int64]Result, err error) {
	others = map[int64]Result{}
	for r, err := range b.Carry(ctx, Order{Verb: admin.Discard, Filter: store.RowFilter{Numbers: rows}, Who: e.Who, Why: e.Why}) {
		switch {
		case err != nil:
			return n, others, err
		case r.Result == Done:
			n++
		default:
			others[r.Number] = r
		}
	}
	return n, others, nil
}

func (r *ErasureReport) add(done *admin.Erased) {
	r.Identities, r.Inbox = r.Identities+done.Identities, r.Inbox+done.Rows
	r.Results, r.Keys = r.Results+done.Results, r.Keys+done.Keys
}

// leave tells of what was left; kept are rows that were to be discarded, and were not.
func (r *ErasureReport) leave(e *Erasure, left []admin.ErasureLeft, kept map[int64]Result) {
	for _, l := range left {
		r.Left++
		if e.Shown == 0 || len(r.List) < e.Shown {
			of := kept[l.Row]
			if of.Result == Failed { // as where somebody keeps a lock on it
				l.Why = admin.ErasureBusy
			}
			r.List = append(r.List, LeftOfErasure{l.Row, l.Key.Consumer, l.Key.Source, legible.Printable(l.Key.ID), l.State, l.Why, of.Error})
		}
	}
}
